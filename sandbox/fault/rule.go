// Package fault injects faults on the wire into an awsJson server: refusals, latency, replies cut
// in the middle or without their date, stalls, resets after the request was carried out, expired
// credentials, a server clock that is wrong.
package fault

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Effect is what a fault does to a request.
type Effect string

// The effects. The first four act before the request is carried out, the others on its reply.
const (
	Error    Effect = "error"    // refuse with Code
	Throttle Effect = "throttle" // refuse with Code what comes faster than PerSecond
	Expired  Effect = "expired"  // refuse the credentials as expired
	Latency  Effect = "latency"  // wait Delay, plus up to Jitter; sometimes Tail instead
	Cut      Effect = "cut"      // send half of the body and close the connection
	Stall    Effect = "stall"    // send half of the body, wait Delay, send the rest
	Reset    Effect = "reset"    // carry the request out, then reset the connection

	Truncate  Effect = "truncate"   // send half of the body as if it were the whole, with its own length and checksum
	NoDate    Effect = "no_date"    // leave out the Date header
	ShiftDate Effect = "shift_date" // shift the Date header by By
)

var effects = []Effect{Error, Throttle, Expired, Latency, Cut, Stall, Reset, Truncate, NoDate, ShiftDate}

// Rule is one fault. When several rules in force have the same effect, the oldest that matches a
// request applies.
type Rule struct {
	Effect    Effect
	Operation string        // such as "GetRecords"; empty: every operation
	Times     int           // how many requests it applies to; 0: all until it is withdrawn
	Odds      float64       // probability that it applies to a matching request, 0..1; 0: always
	Code      string        // error, throttle: the error's code; throttle's default is ThrottlingException
	Status    int           // error: HTTP status; 0: the service's for the code
	PerSecond float64       // throttle: rate of the requests that pass
	Delay     time.Duration // latency, stall
	Jitter    time.Duration // latency: upper bound of what is added to Delay
	Tail      time.Duration // latency: instead of Delay, with probability TailOdds
	TailOdds  float64       // latency: 0..1
	By        time.Duration // shift_date
}

// check refuses a malformed rule and fills in a throttle's default code.
func (r *Rule) check() error {
	switch {
	case !slices.Contains(effects, r.Effect):
		return fmt.Errorf("effect %q: want one of %v", r.Effect, effects)
	case r.Times < 0, r.Odds < 0 || r.Odds > 1, r.TailOdds < 0 || r.TailOdds > 1, r.PerSecond < 0:
		return fmt.Errorf("effect %s: a number is out of its range", r.Effect)
	case r.Delay < 0, r.Jitter < 0, r.Tail < 0:
		return fmt.Errorf("effect %s: a duration is negative", r.Effect)
	case r.Effect == Error && r.Code == "":
		return fmt.Errorf("effect error: no code")
	case r.Effect == Throttle && r.Code == "":
		r.Code = "ThrottlingException"
	}
	return nil
}

// messages are the service's messages by error code.
var messages = map[string]string{
	"ThrottlingException":    "Rate of requests exceeds the allowed throughput.",
	"LimitExceededException": "Rate exceeded.",
	"ProvisionedThroughputExceededException": "The level of configured provisioned throughput for the table was " +
		"exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API.",
	"InternalServerError":        "Internal server error",
	"ServiceUnavailable":         "The service is temporarily unavailable.",
	"ExpiredTokenException":      "The security token included in the request is expired",
	"ExpiredIteratorException":   "The shard iterator has expired and can no longer be used.",
	"TrimmedDataAccessException": "The operation attempted to read past the oldest stream record in a shard.",
	"ResourceNotFoundException":  "Requested resource not found",
	"AccessDeniedException":      "User is not authorized to perform this operation",
}

// statusOf returns the HTTP status that the service uses for an error code.
func statusOf(code string) int {
	switch code {
	case "InternalServerError":
		return http.StatusInternalServerError
	case "ServiceUnavailable", "ServiceUnavailableException":
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
