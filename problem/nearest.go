package problem

import "strings"

// Nearest and Mistyped compare a word with the known ones. The rule of both: a known word that differs in upper and
// lower case only is meant; else the one with the fewest edits, if these are fewer than its own letters and about a
// third of the letters of the word. They differ in what they know about the word:
//
//   - Nearest takes a word that is certainly wrong, for a hint. In short words it allows two edits all the same, and it
//     ignores upper and lower case.
//   - Mistyped takes a word that may well be meant as it stands, for a warning. It allows a third of the letters and
//     never more than two edits, and upper and lower case count.

// Nearest returns the known word that an unknown one most likely means, or "".
func Nearest(word string, known []string) string {
	return closest(word, known, max(2, len(word)/3), strings.ToLower)
}

// Mistyped returns the known word that a word is probably a misspelling of, or "".
func Mistyped(word string, known []string) string {
	return closest(word, known, min(2, len(word)/3), func(s string) string { return s })
}

// closest returns the known word with the fewest edits, at most the given number, between the
// folded words.
func closest(word string, known []string, edits int, fold func(string) string) string {
	best, least := "", edits+1
	for _, k := range known {
		if k != word && strings.EqualFold(k, word) {
			return k
		}
		if d := distance(fold(word), fold(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's: how many letters must be added, removed or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
