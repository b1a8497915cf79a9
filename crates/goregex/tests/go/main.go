// Writes what Go's own regexp says of many patterns, for ../go_answers.rs and ../../src/tests.rs to compare with.
//
// To write the tables anew, with Go 1.26: cd crates/goregex/tests/go && go run .
//
// Reads patterns.txt (a pattern on each line; # begins a comment) and names.json. Writes answers.jsonl, classes.jsonl and
// folds.jsonl. It writes the same bytes each time.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func main() {
	var names []string
	if err := json.Unmarshal(read("names.json"), &names); err != nil {
		log.Fatal(err)
	}
	patterns := written()
	patterns = append(patterns, systematic()...)
	patterns = append(patterns, atLimits()...)
	patterns = append(patterns, random(3000)...)
	writeAnswers(patterns, names)
	writeClasses()
	writeFolds()
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	return data
}

// written returns the patterns that people wrote.
func written() []string {
	var patterns []string
	lines := bufio.NewScanner(bytes.NewReader(read("patterns.txt")))
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "#") {
			patterns = append(patterns, lines.Text())
		}
	}
	return patterns
}

// A table has a JSON array on each line.
type table struct{ bytes.Buffer }

func (t *table) add(cells ...any) {
	encoder := json.NewEncoder(t)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(cells); err != nil {
		log.Fatal(err)
	}
}

func (t *table) write(path string) {
	if err := os.WriteFile(path, t.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// writeAnswers writes a line for each pattern: the pattern, Go's error or "", and the numbers of the names that match.
func writeAnswers(patterns, names []string) {
	seen := map[string]bool{}
	var answers table
	for _, pattern := range patterns {
		// JSON has only valid UTF-8, as have Kubernetes' objects.
		if seen[pattern] || !utf8.ValidString(pattern) {
			continue
		}
		seen[pattern] = true
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			answers.add(pattern, err.Error(), []int{})
			continue
		}
		matches := []int{}
		for number, name := range names {
			if compiled.MatchString(name) {
				matches = append(matches, number)
			}
		}
		answers.add(pattern, "", matches)
	}
	answers.write("answers.jsonl")
}

// classNames returns all names of Unicode's classes that Go has.
func classNames() []string {
	names := []string{"Any", "ASCII", "Assigned"}
	for name := range unicode.Categories {
		names = append(names, name)
	}
	for name := range unicode.Scripts {
		names = append(names, name)
	}
	for name := range unicode.CategoryAliases {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// writeClasses writes a line for each class: the pattern, how many characters match, and a hash of their ranges.
func writeClasses() {
	patterns := []string{`.`, `\d`, `\D`, `\s`, `\S`, `\w`, `\W`}
	for _, name := range posixNames {
		patterns = append(patterns, "[[:"+name+":]]", "[[:^"+name+":]]")
	}
	for _, name := range classNames() {
		patterns = append(patterns, `\p{`+name+`}`, `\P{`+name+`}`)
	}
	var classes table
	for _, pattern := range patterns {
		for _, flags := range []string{"", "(?i)"} {
			compiled, err := regexp.Compile("^" + flags + pattern + "$")
			if err != nil {
				continue
			}
			count, hash := characters(compiled)
			classes.add(flags+pattern, count, hash)
		}
	}
	classes.write("classes.jsonl")
}

// characters returns how many characters match, and the FNV-1a hash of their ranges, each written as "first-last;".
func characters(compiled *regexp.Regexp) (int, string) {
	hash := fnv.New64a()
	count, first := 0, rune(-1)
	for r := rune(0); r <= unicode.MaxRune+1; r++ {
		if 0xD800 <= r && r <= 0xDFFF {
			continue
		}
		matches := r <= unicode.MaxRune && compiled.MatchString(string(r))
		if matches {
			count++
		}
		if matches && first < 0 {
			first = r
		}
		if !matches && first >= 0 {
			last := r - 1
			if r == 0xE000 {
				last = 0xD7FF
			}
			fmt.Fprintf(hash, "%x-%x;", first, last)
			first = -1
		}
	}
	return count, fmt.Sprintf("%016x", hash.Sum64())
}

// writeFolds writes a line for each set of characters that differ only in case.
func writeFolds() {
	var folds table
	for r := rune(0); r <= unicode.MaxRune; r++ {
		same := []any{string(r)}
		for other := unicode.SimpleFold(r); other > r; other = unicode.SimpleFold(other) {
			same = append(same, string(other))
		}
		if len(same) > 1 && unicode.SimpleFold(r) > r && smallest(r) {
			folds.add(same...)
		}
	}
	folds.write("folds.jsonl")
}

func smallest(r rune) bool {
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if other < r {
			return false
		}
	}
	return true
}
