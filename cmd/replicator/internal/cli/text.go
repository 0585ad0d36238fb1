package cli

import "strings"

// ShellQuote returns s as one word of a POSIX shell.
func ShellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Must panics on an error that only a mistake in a command can cause.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
