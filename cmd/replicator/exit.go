package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The exit codes: scripts branch on them.
const (
	exitOK          = 0
	exitRuntime     = 1 // it was tried and went wrong, or took too long
	exitUsage       = 2 // the command line or the configuration
	exitEnvironment = 3 // a server, a permission, a port, a table that is not there
	exitDifferences = 4 // it worked, and what was compared is not equal
)

// ExitError is an error that knows its exit code and what the user can do next.
type ExitError struct {
	Code int
	Err  error
	Hint string
}

func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap gives the error that it carries.
func (e *ExitError) Unwrap() error { return e.Err }

func usageError(hint, format string, args ...any) error {
	return &ExitError{Code: exitUsage, Err: fmt.Errorf(format, args...), Hint: hint}
}

func environmentError(err error, hint string) error {
	return &ExitError{Code: exitEnvironment, Err: err, Hint: hint}
}

// silent ends the command with a code when everything has been said.
func silent(code int) error { return &ExitError{Code: code} }

// verdict prints what went wrong (what, then what next) and returns the exit code. What cobra refuses before a command
// has begun is usage.
func (a *app) verdict(err error) int {
	if err == nil {
		return exitOK
	}
	code, hint := exitRuntime, ""
	var exit *ExitError
	switch {
	case errors.As(err, &exit):
		code, hint = exit.Code, exit.Hint
		if exit.Err == nil {
			return code
		}
	case !a.began:
		code, hint = exitUsage, "see `"+a.path+" --help`"
	case errors.Is(err, context.Canceled):
		hint = "it was interrupted; running it again is safe"
	}
	what := strings.TrimRight(err.Error(), "\n")
	fmt.Fprintf(a.errs, "%s: %s\n", a.path, what)
	if hint != "" {
		fmt.Fprintf(a.errs, "  next: %s\n", hint)
	}
	if a.json && !a.printed {
		if err := json.NewEncoder(a.out).Encode(map[string]any{"schema": schema, "error": what, "hint": hint, "exit": code}); err != nil {
			fmt.Fprintf(a.errs, "%s: write error: %v\n", a.path, err)
		}
	}
	return code
}
