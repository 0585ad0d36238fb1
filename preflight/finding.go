package preflight

import (
	"fmt"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/problem"
)

// errorf returns an error of the environment at a path of the configuration.
func errorf(code, path, hint, what string, args ...any) problem.Problem {
	return problem.Problem{
		Severity: problem.SeverityError, Code: code, Path: path, What: fmt.Sprintf(what, args...), Hint: hint,
	}
}

// warnf returns a warning about the environment at a path of the configuration.
func warnf(code, path, hint, what string, args ...any) problem.Problem {
	p := errorf(code, path, hint, what, args...)
	p.Severity = problem.SeverityWarning
	return p
}

// add adds to what was found in the environment.
func (c *check) add(found ...problem.Problem) { c.Environment = append(c.Environment, found...) }

// failed adds the error of a server, with the hint that the error carries.
func (c *check) failed(code, path string, err error) {
	_, hint := failure.Of(err)
	c.add(errorf(code, path, hint, "%s", err.Error()))
}
