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

// HTTP is the faults of one server. Its methods may be called at any time.
type HTTP struct {
	clock *clock.Clock

	mu    sync.Mutex
	rnd   *rand.Rand
	rules []*active
	gzip  bool
	skew  time.Duration
	exact bool
}

type active struct {
	Rule
	left int // strikes to come; < 0: any number
	next time.Time
}

// New returns a well-behaved server's faults.
func New(c *clock.Clock, seed uint64) *HTTP {
	return &HTTP{clock: c, rnd: rand.New(rand.NewPCG(seed, 5))}
}

// Inject puts a rule in force.
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

// Withdraw takes away the rules of an effect and an operation; empty is any.
func (h *HTTP) Withdraw(e Effect, operation string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var keep []*active
	for _, a := range h.rules {
		if e != "" && a.Effect != e || operation != "" && a.Operation != operation {
			keep = append(keep, a)
		}
	}
	h.rules = keep
}

// Pending is how many strikes the rules with a number of times still have.
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

// Skew shifts the server's clock, as seen in Date headers and by CheckTime.
func (h *HTTP) Skew(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew = d
}

// CheckTime refuses requests that were signed more than five minutes from the server's
// time, as the service does; the sandbox checks nothing else of a signature.
func (h *HTTP) CheckTime(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.exact = on
}

// Calm takes everything away.
func (h *HTTP) Calm() {
	h.Withdraw("", "")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gzip, h.skew, h.exact = false, 0, false
}

// plan is what happens to one request.
type plan struct {
	delay  time.Duration
	code   string
	text   string
	status int
	reply  Effect // Cut, Stall, Reset or ""
	stall  time.Duration
	gzip   bool
	date   time.Time // of the reply; zero: the server's own
}

func (p *plan) plain() bool { return p.reply == "" && !p.gzip && p.date.IsZero() }

// plan draws what happens to a request, and counts it.
func (h *HTTP) plan(op string, r *http.Request) plan {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := plan{gzip: h.gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")}
	if h.skew != 0 {
		p.date = h.clock.Now().Add(h.skew)
	}
	if h.exact {
		p.text = h.signedAt(r)
		if p.text != "" {
			p.code, p.status = "InvalidSignatureException", http.StatusBadRequest
		}
	}
	done := map[Effect]bool{}
	for _, a := range h.rules {
		if done[a.Effect] || a.left == 0 || a.Operation != "" && a.Operation != op || a.Odds > 0 && h.rnd.Float64() >= a.Odds {
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
		p.date = h.clock.Now() // a refusal tells the time too: clients whose clock is off learn it there
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

const (
	amzDate   = "20060102T150405Z"
	tolerance = 5 * time.Minute
)

// signedAt returns the refusal of a signature's time, or "".
func (h *HTTP) signedAt(r *http.Request) string {
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

// Wrap is the middleware. Requests that are no call of an AWS API pass untouched.
func (h *HTTP) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		p := h.plan(op, r)
		if p.delay > 0 && !hold(r, p.delay) {
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

// hold delays a request; false means that its client went away. The body is taken first:
// only then does the server see a client go.
func hold(r *http.Request, d time.Duration) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return clock.Pause(r.Context(), d) == nil
}

func refuse(w http.ResponseWriter, p *plan) {
	rec := &recorder{header: http.Header{}, status: p.status, body: stream.ErrorReply(p.code, p.text)}
	rec.header.Set("Content-Type", "application/x-amz-json-1.0")
	rec.deliver(w, p)
}
