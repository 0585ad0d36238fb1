package ir

import (
	"errors"

	"github.com/tailrace-cdc/replicator/transform/tmpl"
)

// WrapRefusal turns the error of a template or an encoding into a Refusal that names the place. If
// err is a Refusal already, its code is kept; otherwise the Refusal has the given code.
func WrapRefusal(code string, err error, format string, args ...any) error {
	what := err.Error()
	if r := (*tmpl.Refusal)(nil); errors.As(err, &r) {
		code, what = r.Code, r.What
	}
	return tmpl.Refuse(code, format+": %s", append(args, what)...)
}
