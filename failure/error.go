package failure

import (
	"errors"
	"fmt"
)

// Error is an error with its class and a hint. Without an error in it, everything has been reported
// already, and only the class is left to return.
type Error struct {
	class Class
	hint  string
	err   error
}

// With returns an error with its class and what its reader can do next; "" for nothing beyond the
// error itself. The package that makes a call gives both.
func With(c Class, hint string, err error) error { return &Error{class: c, hint: hint, err: err} }

// Usagef returns an error of class Usage.
func Usagef(hint, format string, args ...any) error {
	return With(Usage, hint, fmt.Errorf(format, args...))
}

// Reported returns an error of which nothing is left to report but the class.
func Reported(c Class) error { return &Error{class: c} }

// Of returns the class and the hint of the outermost error that With or Reported made; None without
// one.
func Of(err error) (c Class, hint string) {
	var e *Error
	if errors.As(err, &e) {
		return e.class, e.hint
	}
	return None, ""
}

// Known reports whether With or Reported made an error.
func Known(err error) bool { return errors.As(err, new(*Error)) }

// IsReported reports whether everything about an error was reported already.
func IsReported(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.err == nil
}

func (e *Error) Error() string {
	if e.err == nil {
		return "reported: " + e.class.String()
	}
	return e.err.Error()
}

// Unwrap returns the error that e carries.
func (e *Error) Unwrap() error { return e.err }
