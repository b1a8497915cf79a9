//! What the gangs of a profile look like: how many pods of what size, for how long, for whom.

use super::draw::Draw;
use super::durations::estimate;
use super::manifest::Amounts;
use super::profiles::{Class, Profile, request};
use super::shapes::Template;
use super::tenants::{PRIORITIES, PriorityClass};

pub struct Gang {
    pub class: &'static str,
    pub roles: Vec<Role>,
    pub subgroups: Option<Subgroups>,
    /// The rank of its team, see `tenants::queue_name`.
    pub queue: Option<usize>,
    pub priority: &'static PriorityClass,
    pub model: Option<&'static str>,
    pub run_seconds: u32,
    pub estimate_seconds: u32,
}

pub struct Role {
    pub name: &'static str,
    pub pods: u64,
    pub min: u64,
    pub request: Amounts,
}

/// Replicas of equal size inside a gang of one role.
pub struct Subgroups {
    pub size: u64,
    pub min: u64,
}

impl Gang {
    pub fn pods(&self) -> u64 {
        self.roles.iter().map(|role| role.pods).sum()
    }

    pub fn min_member(&self) -> u64 {
        self.roles.iter().map(|role| role.min).sum()
    }

    pub fn min_resources(&self) -> Amounts {
        self.roles
            .iter()
            .fold(Amounts::default(), |sum, role| sum.plus(role.request.times(role.min)))
    }

    pub fn gpus(&self) -> u64 {
        self.roles.iter().map(|role| role.request.gpus * role.pods).sum()
    }
}

/// What gangs are drawn from.
pub struct Mix {
    pub profile: Profile,
    pub gpus_per_pod: u64,
    /// No gang asks for more GPUs than this.
    pub largest: u64,
    /// A third of the gangs with GPUs ask for a model of this template.
    pub typed: Option<Template>,
    pub queues: Vec<(u64, usize)>,
}

/// Between the 10 and 20 % that are said to be elastic. They start with half their workers.
const ELASTIC_PERCENT: u64 = 15;

/// openb's share of pods that name a model.
const TYPED_PERCENT: u64 = 33;

impl Mix {
    pub fn draw(&self, draw: &mut Draw) -> Gang {
        let classes: Vec<(u64, &Class)> =
            self.profile.classes().iter().map(|class| (class.share, class)).collect();
        let class = draw.pick(&classes);
        let size = draw.pick(class.sizes);
        let (roles, subgroups) = match self.profile {
            Profile::Llm | Profile::Research => (self.workers(size, draw), None),
            Profile::Pai => (self.servers_and_workers(size, draw), None),
            Profile::Serving => self.replicas(size, draw),
            Profile::Cpu => (vec![role("worker", size, request(0, draw), draw)], None),
        };
        let run_seconds = class.durations.draw(draw);
        Gang {
            class: class.name,
            model: self.model(&roles, draw),
            roles,
            subgroups,
            queue: (!self.queues.is_empty()).then(|| draw.pick(&self.queues)),
            priority: draw.pick(&PRIORITIES.each_ref().map(|class| (class.share, class))),
            run_seconds,
            estimate_seconds: estimate(run_seconds, draw),
        }
    }

    /// One pod if the GPUs fit in one, otherwise as many full pods as it takes.
    fn workers(&self, gpus: u64, draw: &mut Draw) -> Vec<Role> {
        // The last pod is full, too, so the limit is one of full pods.
        let full = self.largest - self.largest % self.gpus_per_pod;
        let gpus = gpus.min(if full > 0 { full } else { self.largest });
        let request = request(gpus.min(self.gpus_per_pod), draw);
        vec![role("worker", gpus.div_ceil(self.gpus_per_pod), request, draw)]
    }

    /// One parameter server for four workers; all servers are needed from the start.
    fn servers_and_workers(&self, workers: u64, draw: &mut Draw) -> Vec<Role> {
        let workers = role("worker", workers.min(self.largest), request(1, draw), draw);
        let servers = workers.pods / 4;
        if servers == 0 {
            return vec![workers];
        }
        vec![Role { name: "ps", pods: servers, min: servers, request: request(0, draw) }, workers]
    }

    /// Replicas go whole: an elastic gang starts with half of them. What is too large loses
    /// replicas first, then pods, then GPUs.
    fn replicas(&self, replicas: u64, draw: &mut Draw) -> (Vec<Role>, Option<Subgroups>) {
        let gpus = draw
            .pick(&[(20, 1), (20, 2), (30, 4), (30, 8)])
            .min(self.gpus_per_pod)
            .min(self.largest);
        let size = draw.pick(&[(40, 2), (30, 4), (20, 8), (10, 16)]).min(self.largest / gpus);
        let replicas = replicas.min(self.largest / (size * gpus));
        let counted = role("worker", replicas, request(gpus, draw), draw);
        let subgroups = Subgroups { size, min: counted.min };
        (vec![Role { pods: replicas * size, min: counted.min * size, ..counted }], Some(subgroups))
    }

    fn model(&self, roles: &[Role], draw: &mut Draw) -> Option<&'static str> {
        let template = self.typed?;
        let request = roles.iter().map(|role| role.request).find(|request| request.gpus > 0)?;
        let models = template.models_for(request);
        (draw.chance(TYPED_PERCENT) && !models.is_empty()).then(|| draw.pick(&models))
    }
}

fn role(name: &'static str, pods: u64, request: Amounts, draw: &mut Draw) -> Role {
    let elastic = draw.chance(ELASTIC_PERCENT);
    Role { name, pods, min: if elastic { pods.div_ceil(2) } else { pods }, request }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::draw::Stream;

    fn gangs(profile: Profile, count: usize) -> Vec<Gang> {
        let mix = Mix {
            profile,
            gpus_per_pod: 8,
            largest: u64::MAX,
            typed: None,
            queues: vec![(60, 0), (40, 1)],
        };
        let mut draw = Draw::new(3, Stream::Gangs);
        (0..count).map(|_| mix.draw(&mut draw)).collect()
    }

    fn mean_gpus(gangs: &[Gang]) -> f64 {
        gangs.iter().map(Gang::gpus).sum::<u64>() as f64 / gangs.len() as f64
    }

    #[test]
    fn means_are_those_of_the_traces() {
        let research = mean_gpus(&gangs(Profile::Research, 20_000));
        assert!((5.7 * 0.8..5.7 * 1.2).contains(&research), "{research}");
        let llm = mean_gpus(&gangs(Profile::Llm, 20_000));
        assert!((20.0..29.0).contains(&llm), "{llm}");
    }

    #[test]
    fn the_median_gang_of_research_is_one_gpu() {
        let mut gpus: Vec<u64> = gangs(Profile::Research, 20_000).iter().map(Gang::gpus).collect();
        gpus.sort_unstable();
        assert_eq!(gpus[10_000], 1);
    }

    #[test]
    fn single_gpus_of_research_run_as_long_as_those_of_openb() {
        let small = gangs(Profile::Research, 20_000).into_iter().filter(|gang| gang.gpus() < 8);
        let mut seconds: Vec<u32> = small.map(|gang| gang.run_seconds).collect();
        seconds.sort_unstable();
        for (percent, wanted) in [(25, 200.0), (50, 633.0), (75, 2248.0), (90, 5691.0)] {
            let found = f64::from(seconds[seconds.len() * percent / 100]);
            assert!(
                (wanted * 0.85..wanted * 1.15).contains(&found),
                "{percent} %: {found}, not {wanted}"
            );
        }
    }

    #[test]
    fn pods_of_pai_are_mostly_in_gangs_and_a_fifth_in_large_ones() {
        let gangs = gangs(Profile::Pai, 50_000);
        let share = |test: &dyn Fn(&Gang) -> bool| {
            let pods: u64 = gangs.iter().filter(|gang| test(gang)).map(Gang::pods).sum();
            pods as f64 / gangs.iter().map(Gang::pods).sum::<u64>() as f64
        };
        let (together, large) = (share(&|gang| gang.pods() > 1), share(&|gang| gang.gpus() > 100));
        assert!((0.83..0.93).contains(&together), "{together}");
        assert!((0.15..0.28).contains(&large), "{large}");
        assert!(gangs.iter().all(|gang| gang.pods() <= 600));
    }

    #[test]
    fn a_minimum_is_at_least_half_and_at_most_all() {
        for profile in Profile::ALL {
            let gangs = gangs(profile, 5_000);
            for gang in &gangs {
                assert!(gang.min_member() >= 1 && gang.min_member() <= gang.pods());
                assert!(gang.min_member() * 2 >= gang.pods());
            }
            let larger: Vec<&Gang> = gangs.iter().filter(|gang| gang.pods() > 1).collect();
            let elastic = larger.iter().filter(|gang| gang.min_member() < gang.pods()).count();
            assert!((5..25).contains(&(elastic * 100 / larger.len())), "{profile:?}: {elastic}");
        }
    }

    #[test]
    fn no_gang_is_larger_than_allowed() {
        for profile in Profile::ALL {
            for (gpus_per_pod, largest) in [(8, 1), (4, 6), (8, 100), (1, 3)] {
                let mix = Mix {
                    profile,
                    gpus_per_pod,
                    largest,
                    typed: Some(Template::Openb),
                    queues: Vec::new(),
                };
                let mut draw = Draw::new(1, Stream::Gangs);
                for gang in (0..500).map(|_| mix.draw(&mut draw)) {
                    assert!(gang.gpus() <= largest, "{profile:?} {}", gang.gpus());
                    assert!(
                        gang.roles
                            .iter()
                            .all(|role| role.pods >= 1 && role.request.gpus <= gpus_per_pod)
                    );
                }
            }
        }
    }

    #[test]
    fn six_tenths_of_the_gpus_are_not_spot() {
        let gangs = gangs(Profile::Research, 100_000);
        let firm: u64 =
            gangs.iter().filter(|gang| gang.priority.name != "spot").map(Gang::gpus).sum();
        let share = firm as f64 / gangs.iter().map(Gang::gpus).sum::<u64>() as f64;
        assert!((0.55..0.65).contains(&share), "{share}");
    }
}
