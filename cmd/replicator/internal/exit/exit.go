package exit

import (
	"fmt"
	"strconv"
	"strings"
)

// The exit codes: scripts branch on them.
const (
	CodeOK          = 0
	CodeRuntime     = 1 // the command was tried and failed, or took too long
	CodeUsage       = 2 // the command line or the configuration is wrong
	CodeEnvironment = 3 // a server, a permission, a port or a table is missing
	CodeDifferences = 4 // the command worked, and what it compared is not equal
)

// Error is an error with an exit code and a hint on what the user can do next. Without Err everything has been printed
// already, and only the code is left to return.
type Error struct {
	Code int
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error that e carries.
func (e *Error) Unwrap() error { return e.Err }

// Usage returns an error of the command line or the configuration.
func Usage(hint, format string, args ...any) error {
	return &Error{Code: CodeUsage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Environment returns an error of the environment: a server, a permission, a port or a table.
func Environment(err error, hint string) error {
	return &Error{Code: CodeEnvironment, Err: err, Hint: hint}
}

// Silent ends the command with a code after everything has been printed.
func Silent(code int) error { return &Error{Code: code} }

// WantsJSON reports whether a command line asks for JSON, wherever in it the mistake is that kept it from being read.
func WantsJSON(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if value, ok := strings.CutPrefix(arg, "--json"); ok {
			on, err := strconv.ParseBool(strings.TrimPrefix(value, "="))
			return value == "" || strings.HasPrefix(value, "=") && (on || err != nil)
		}
	}
	return false
}
