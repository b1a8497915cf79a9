package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

var posixNames = []string{
	"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
	"xdigit",
}

// systematic returns every printable character in every place of the syntax, and every name of a class.
func systematic() []string {
	var patterns []string
	add := func(pattern string) { patterns = append(patterns, pattern) }
	places := []string{
		`%s`, `a%s`, `%sa`, `\%s`, `\%sa`, `^\%s$`, `[%s]`, `[^%s]`, `[\%s]`, `[a-%s]`, `[%s-z]`, `[a-\%s]`, `[%s`,
		`(?%s)`, `(?%s:a)`, `(?-%s)a`, `(?i%s)k`, `a{%s}`, `a{1%s}`, `a{1,%s}`, `a*%s`, `a{2}%s`, `\p%s`, `\x%s`,
		`\x{%s}`, `\x4%s`, `\1%s`, `(%s`, `(?P<%s>a)`, `(?<%s>a)`, `(?i)%s`, `[[:%s:]]`, `[:%s:]`,
	}
	for c := ' '; c <= '~'; c++ {
		for _, place := range places {
			add(fmt.Sprintf(place, string(c)))
		}
	}
	for _, name := range append(posixNames, "Alpha", "", "foo", "^") {
		for _, form := range []string{`[[:%s:]]`, `[[:^%s:]]`, `(?i)[[:%s:]]`, `(?i)[^[:%s:]]`, `[a[:%s:]-z]`, `[:%s:]`} {
			add(fmt.Sprintf(form, name))
		}
	}
	for _, name := range classNames() {
		for _, form := range []string{`\p{%s}`, `(?i)^[^\P{%s}]+$`} {
			add(fmt.Sprintf(form, name))
		}
		add(`\p{` + strings.ToLower(name) + `}`)
		add(`\p{^` + strings.ToUpper(name) + `}`)
		add(`\p{` + strings.ReplaceAll(name, "_", " ") + `}`)
		add(`\p{` + strings.ReplaceAll(name, "_", "") + `}`)
	}
	for _, name := range []string{"", "^", "Grek", "Latn", "Garay", "Todhri", "Foo", "L_", "_L", "l-", "Lu Lu", "gc=L", "sc=Greek", "Alphabetic", "XID_Start", "é"} {
		add(`\p{` + name + `}`)
	}
	return patterns
}

// atLimits returns patterns at both sides of Go's limits. Those on the size of a program are not here: they would make
// the table large.
func atLimits() []string {
	var patterns []string
	nested := func(open, inner, shut string, levels int) {
		patterns = append(patterns, strings.Repeat(open, levels)+inner+strings.Repeat(shut, levels))
	}
	for _, levels := range []int{997, 998, 999, 1000, 1001} {
		nested("(", "a", ")", levels)
		nested("(", "a.", ")", levels)
		nested("(", "", ")", levels)
	}
	for _, levels := range []int{499, 500, 501} {
		nested("(", "a", ")*", levels)
		nested("(a.", "b", ")", levels)
		nested("(ab", "c", ")", levels)
	}
	for _, levels := range []int{332, 333, 334} {
		nested("(a.|", "b", ")", levels)
		nested("(x|y.", "b", ")", levels)
	}
	nested("(?:", "a", ")", 1500)
	nested("(?:a", "b", ")", 1500)
	nested("(?:a.", "b", ")", 1000)
	nested("(?:a|", "b", ")", 1000)
	nested("(?:ab|", "b", ")", 700)
	nested("(", "a", "", 1001)
	for _, count := range []int{31, 32, 100, 999, 1000, 1001, 99999999, 100000000, 1000000000} {
		for _, form := range []string{`a{%d}`, `a{%d,}`, `a{0,%d}`, `a{%d}?`, `(a{%d}){31}`, `(a{%d}){32}`, `(a{2,%d}b)*{10}`, `((a{%d})*){10}`, `(a{%d}){1}`, `(a{%d}){0}`, `(a{0}){%d}`, `((a{10}){0,10}){%d}`, `(?:|a){%d}`, `(a{0,}){%d}`} {
			patterns = append(patterns, fmt.Sprintf(form, count))
		}
	}
	return append(patterns, `\pL{1000}`, `(?i)\pL{10}`, `.{1000}`, `[^a]{1000}`, `((a{10}){10}){10}`, `((a{10}){10}){11}`)
}

// random returns patterns from a grammar. A third of them is damaged afterwards.
func random(count int) []string {
	dice := rand.New(rand.NewPCG(1, 2))
	var patterns []string
	for len(patterns) < count {
		pattern := choice(dice, 3)
		if dice.IntN(3) == 0 {
			pattern = damage(dice, pattern)
		}
		if len(pattern) <= 60 {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

func pick(dice *rand.Rand, from []string) string {
	return from[dice.IntN(len(from))]
}

func choice(dice *rand.Rand, depth int) string {
	alternatives := []string{sequence(dice, depth)}
	for dice.IntN(4) == 0 {
		alternatives = append(alternatives, sequence(dice, depth))
	}
	return strings.Join(alternatives, "|")
}

func sequence(dice *rand.Rand, depth int) string {
	var text strings.Builder
	for range dice.IntN(5) {
		text.WriteString(atom(dice, depth))
		if dice.IntN(3) == 0 {
			text.WriteString(pick(dice, operators))
		}
	}
	return text.String()
}

var operators = []string{
	"*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{2,3}?", "{0}", "{,2}", "{02}", "{2,1}", "{1001}", "**", "{2}{3}",
}

var literals = []string{
	"a", "b", "k", "K", "s", "S", "-", "1", "0", "n", "node", "gpu-", "rack", "_", " ", "é", "σ", "Σ", "😀", "日", ":", "<", "&", "~",
	"\n", "/", "]", "}", "{", "#", "ſ",
}

var escapes = []string{
	`\d`, `\D`, `\w`, `\W`, `\s`, `\S`, `\pL`, `\PL`, `\p{Lu}`, `\P{Ll}`, `\p{Greek}`, `\p{^Greek}`, `\p{Han}`, `\p{N}`, `\n`, `\t`, `\v`, `\a`,
	`\x61`, `\x{e9}`, `\x{1F600}`, `\101`, `\0`, `\60`, `\-`, `\.`, `\_`, `\\`, `\]`, `\[`, `\^`, `\/`, `\<`,
}

var assertions = []string{`^`, `$`, `\A`, `\z`, `\b`, `\B`, `.`, `.`, `.`}

var groups = []string{
	"(", "(", "(?:", "(?:", "(?i)(", "(?i:", "(?s:", "(?m:", "(?U:", "(?im-s:", "(?-i:", "(?P<n>", "(?<name>", "(?mi)(?:", "(?-s:", "(?sm:",
}

func atom(dice *rand.Rand, depth int) string {
	switch roll := dice.IntN(20); {
	case roll < 8:
		return pick(dice, literals)
	case roll < 10:
		return pick(dice, assertions)
	case roll < 12:
		return pick(dice, escapes)
	case roll < 15:
		return class(dice)
	case roll == 15:
		return `\Q` + pick(dice, literals) + pick(dice, []string{"*", ".", "(", `\`, "+["}) + pick(dice, []string{`\E`, `\E`, ""})
	case depth > 0:
		return pick(dice, groups) + choice(dice, depth-1) + ")"
	default:
		return pick(dice, literals)
	}
}

func class(dice *rand.Rand) string {
	var text strings.Builder
	text.WriteString(pick(dice, []string{"[", "[", "[^", "[]", "[^]", "[-"}))
	for range 1 + dice.IntN(4) {
		switch dice.IntN(6) {
		case 0:
			text.WriteString(pick(dice, []string{"a-z", "A-Z", "0-9", "a-c", "k-s", "α-ω", "!-~", "-", "z-a", "--/", "a-\\x7a"}))
		case 1:
			text.WriteString(pick(dice, escapes))
		case 2:
			text.WriteString("[:" + pick(dice, []string{"", "^"}) + pick(dice, posixNames) + ":]")
		case 3:
			text.WriteString(pick(dice, []string{"[", "&&", "~~", "^", "[:", "--", "b-", "."}))
		default:
			text.WriteString(pick(dice, literals[:29]))
		}
	}
	return text.String() + "]"
}

// damage removes, doubles, swaps or inserts a character.
func damage(dice *rand.Rand, pattern string) string {
	runes := []rune(pattern)
	if len(runes) < 2 {
		return pattern
	}
	at := dice.IntN(len(runes) - 1)
	before, after := string(runes[:at]), string(runes[at+1:])
	switch dice.IntN(4) {
	case 0:
		return before + after
	case 1:
		return before + strings.Repeat(string(runes[at]), 2) + after
	case 2:
		return before + string(runes[at+1]) + string(runes[at]) + string(runes[at+2:])
	default:
		return before + pick(dice, strings.Split(`( ) [ ] { } * + ? \ | ^ $ . - : , < > = ! P p`, " ")) + string(runes[at:])
	}
}
