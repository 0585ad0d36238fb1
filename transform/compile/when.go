package compile

import (
	"regexp"
	"strings"
)

// firstLine returns the first line of a message of CEL, without its prefix.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimPrefix(line, "ERROR: ")
}

var undeclared = regexp.MustCompile(`undeclared reference to '(\w+)'`)

// whenHint returns how to correct an expression, from the message of CEL about it.
func whenHint(problem string) string {
	hint := "a CEL expression over item that gives true or false: has(item.x) && item.x == \"open\""
	if m := undeclared.FindStringSubmatch(problem); m != nil {
		return "an attribute is a field of item: item." + m[1] + "; " + hint
	}
	if strings.Contains(problem, "token recognition error at: '= '") {
		return "equality is ==; " + hint
	}
	return hint
}
