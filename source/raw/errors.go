package raw

// ErrNoDate is a reply without a Date header, for a call that needs the service's time.
var ErrNoDate error = noDateError{}

type noDateError struct{}

func (noDateError) Error() string { return "the reply has no Date header" }

// RetryableError lets the SDK try again where the SDK does the retries.
func (noDateError) RetryableError() bool { return true }

// ErrDateDropped is a reply with a Date that was dropped, for a call that needs the service's time.
var ErrDateDropped error = dateDroppedError{}

type dateDroppedError struct{}

func (dateDroppedError) Error() string {
	return "the reply's Date is more than 30 s from the time that the replies before it show"
}

// RetryableError lets the caller read again.
func (dateDroppedError) RetryableError() bool { return true }

// MalformedError is a reply with status 200 that is not what it should be: cut off, or not from
// DynamoDB at all.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return e.Err.Error() }

// RetryableError lets the SDK try again where the SDK does the retries.
func (e *MalformedError) RetryableError() bool { return true }

func (e *MalformedError) Unwrap() error { return e.Err }

// skewedError is a refusal because our clock is wrong. The next call is signed with the right time.
type skewedError struct{ error }

func (e *skewedError) RetryableError() bool { return true }

func (e *skewedError) Unwrap() error { return e.error }
