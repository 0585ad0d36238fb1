package fault

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
	"github.com/tailrace-cdc/replicator/sandbox/stream"
)

// HTTP injects faults into one server, as its middleware. Its methods may be called at any time.
type HTTP struct {
	clock *clock.Clock

	mu        sync.Mutex
	rnd       *rand.Rand
	rules     []*active     // oldest first
	gzip      bool          // compress replies
	skew      time.Duration // added to the server's clock
	checkTime bool          // refuse requests signed at another time
}

// active is a rule in force.
type active struct {
	Rule
	left int       // requests that it still applies to; < 0: any number
	next time.Time // throttle: when the next request passes
}

// New returns a middleware without faults. Random ones repeat with the seed.
func New(c *clock.Clock, seed uint64) *HTTP {
	return &HTTP{clock: c, rnd: rand.New(rand.NewPCG(seed, 5))}
}

// Inject puts a rule in force. A malformed rule is an error.
func (h *HTTP) Inject(r Rule) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("inject fault: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &active{Rule: r, left: r.Times}
	if r.Times == 0 {
		a.left = -1
	}
	h.rules = append(h.rules, a)
	return nil
}

// Withdraw removes the rules of an effect and an operation; an empty argument matches all.
func (h *HTTP) Withdraw(e Effect, operation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rest []*active
	for _, a := range h.rules {
		if e != "" && a.Effect != e || operation != "" && a.Operation != operation {
			rest = append(rest, a)
		}
	}
	h.rules = rest
}

// Pending returns how many requests the rules with a number of times still apply to.
func (h *HTTP) Pending() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, a := range h.rules {
		n += max(a.left, 0)
	}
	return n
}

// Gzip makes the server compress replies for clients that accept it.
func (h *HTTP) Gzip(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gzip = on
}

// Skew shifts the server's clock in Date headers and for CheckTime.
func (h *HTTP) Skew(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew = d
}

// CheckTime refuses requests that were signed more than five minutes from the server's
// time, as the service does.
func (h *HTTP) CheckTime(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkTime = on
}

// Calm removes all faults.
func (h *HTTP) Calm() {
	h.Withdraw("", "")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gzip, h.skew, h.checkTime = false, 0, false
}

// plan is what the faults in force do to one request.
type plan struct {
	delay  time.Duration // before the request is carried out
	code   string        // of the refusal; "": the request is carried out
	text   string        // of the refusal
	status int           // of the refusal
	reply  Effect        // Cut, Stall, Reset, Truncate or ""
	stall  time.Duration // between the halves of the reply
	gzip   bool
	date   time.Time // Date header of the reply; zero: the server's own
	noDate bool      // leave out the Date header
}

// plain reports whether the reply goes out as the server writes it.
func (p *plan) plain() bool { return p.reply == "" && !p.gzip && p.date.IsZero() && !p.noDate }

// plan draws what the faults in force do to a request, and counts it against their numbers of
// times.
func (h *HTTP) plan(op string, r *http.Request) plan {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := plan{gzip: h.gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")}
	if h.skew != 0 {
		p.date = h.clock.Now().Add(h.skew)
	}
	if h.checkTime {
		p.text = h.refuseSigningTime(r)
		if p.text != "" {
			p.code, p.status = "InvalidSignatureException", http.StatusBadRequest
		}
	}
	done := map[Effect]bool{}
	for _, a := range h.rules {
		if done[a.Effect] || a.left == 0 || a.Operation != "" && a.Operation != op || a.Odds > 0 &&
			h.rnd.Float64() >= a.Odds {
			continue
		}
		if a.Effect == Throttle && !h.tooFast(a) {
			continue
		}
		done[a.Effect] = true
		if a.left > 0 {
			a.left--
		}
		h.apply(a, &p)
	}
	if p.code != "" && p.date.IsZero() {
		p.date = h.clock.Now() // clients whose clock is wrong learn the server's time from a refusal
	}
	return p
}

// tooFast reports whether a request is beyond a throttle's rate.
func (h *HTTP) tooFast(a *active) bool {
	now := time.Now()
	if a.PerSecond == 0 || now.Before(a.next) {
		return true
	}
	a.next = now.Add(time.Duration(float64(time.Second) / a.PerSecond))
	return false
}

// apply adds a rule's effect to a plan.
func (h *HTTP) apply(a *active, p *plan) {
	switch a.Effect {
	case Error, Throttle:
		p.code, p.status = a.Code, a.Status
	case Expired:
		p.code = "ExpiredTokenException"
	case Latency:
		p.delay = a.Delay
		if a.Jitter > 0 {
			p.delay += time.Duration(h.rnd.Int64N(int64(a.Jitter)))
		}
		if a.TailOdds > 0 && h.rnd.Float64() < a.TailOdds {
			p.delay = a.Tail
		}
	case NoDate:
		p.noDate = true
	case ShiftDate:
		p.date = h.clock.Now().Add(h.skew + a.By)
	default:
		p.reply, p.stall = a.Effect, a.Delay
	}
	if p.code != "" && p.text == "" {
		p.text = messages[p.code]
	}
	if p.code != "" && p.status == 0 {
		p.status = statusOf(p.code)
	}
}

// The format of X-Amz-Date, and how far from the server's time a request may be signed.
const (
	amzDate   = "20060102T150405Z"
	tolerance = 5 * time.Minute
)

// refuseSigningTime returns the message for a request that was signed too far from the server's
// time, "" for any other.
func (h *HTTP) refuseSigningTime(r *http.Request) string {
	at, err := time.Parse(amzDate, r.Header.Get("X-Amz-Date"))
	if err != nil {
		return ""
	}
	now := h.clock.Now().Add(h.skew)
	switch off := now.Sub(at); {
	case off > tolerance:
		return fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			at.Format(amzDate), now.Add(-tolerance).Format(amzDate), now.Format(amzDate))
	case off < -tolerance:
		return fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			at.Format(amzDate), now.Add(tolerance).Format(amzDate), now.Format(amzDate))
	}
	return ""
}

// Wrap returns next with the faults in front of it. Requests that do not call an AWS API pass
// unchanged.
func (h *HTTP) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		p := h.plan(op, r)
		if p.delay > 0 && !delayRequest(r, p.delay) {
			return
		}
		switch {
		case p.code != "":
			refuse(w, &p)
		case p.plain():
			next.ServeHTTP(w, r)
		default:
			rec := &recorder{header: http.Header{}}
			next.ServeHTTP(rec, r)
			rec.send(w, r, &p)
		}
	})
}

// delayRequest delays a request; false means that its client disconnected. It reads the body first,
// because net/http detects a disconnected client only after that.
func delayRequest(r *http.Request, d time.Duration) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return clock.Pause(r.Context(), d) == nil
}

// refuse answers a request with the plan's error.
func refuse(w http.ResponseWriter, p *plan) {
	rec := &recorder{header: http.Header{}, status: p.status, body: stream.ErrorReply(p.code, p.text)}
	rec.header.Set("Content-Type", "application/x-amz-json-1.0")
	rec.deliver(w, p)
}
