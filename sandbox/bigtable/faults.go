package bigtable

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/sandbox/clock"
)

// Odds are the probabilities of random faults, each in 0..1.
type Odds struct {
	Refuse    float64 `json:"refuse"`    // a call is refused before anything is applied
	Ambiguous float64 `json:"ambiguous"` // a call is applied, then reported failed
	Late      float64 `json:"late"`      // a call is reported failed, and applied LateBy afterwards

	// For one entry of a bulk call:
	EntryRefuse    float64 `json:"entry_refuse"`    // not applied, reported failed
	EntryAmbiguous float64 `json:"entry_ambiguous"` // applied, reported failed
	Missing        float64 `json:"missing"`         // applied, left out of the reply
}

// Kind is a fault of one writing call.
type Kind string

// The kinds, as in Odds.
const (
	Refuse    Kind = "refuse"
	Ambiguous Kind = "ambiguous"
	Late      Kind = "late"
)

// Faults injects faults into a front. All are off at first. The methods may be called at any time.
type Faults struct {
	front *Front

	mu       sync.Mutex
	odds     Odds
	code     codes.Code
	lateBy   time.Duration
	held     bool          // late writes wait for ReleaseLate
	release  chan struct{} // closed by ReleaseLate
	waiting  int           // late writes that are not applied yet
	next     []Kind        // of the next writing calls
	down     bool          // an outage has begun
	downTill time.Time     // end of the outage; zero: until Recover
	latency  time.Duration
	jitter   time.Duration
	rows     []*rowRefusal
	profiles map[string]bool   // app profiles that take no CheckAndMutateRow
	cluster  string            // of the app profiles that are not in profiles
	routed   map[string]string // app profiles that route to another cluster than that
	settings *rowRefusal       // of calls that ask for settings; nil: none
	asked    chan struct{}     // calls that ask for settings wait until it is closed; nil: they do not
	shown    *shownRule        // of a family, in place of its own
	inOrder  bool
	replicas bool // the instance is replicated
}

// rowRefusal refuses writes to the rows of a prefix.
type rowRefusal struct {
	prefix []byte
	code   codes.Code
	left   int // refusals still to come; < 0: any number
}

// shownRule is a rule that descriptions of tables show in place of a family's own.
type shownRule struct {
	family string
	rule   *btapb.GcRule
	left   int // descriptions still to come
}

func newFaults(f *Front) *Faults {
	return &Faults{front: f, code: codes.Unavailable, lateBy: 100 * time.Millisecond, release: make(chan struct{}),
		profiles: map[string]bool{}, shown: &shownRule{}}
}

// set changes faults under the lock.
func (x *Faults) set(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

// Random sets the odds of random faults.
func (x *Faults) Random(o Odds) { x.set(func() { x.odds = o }) }

// Code sets the code of injected failures; UNAVAILABLE at first.
func (x *Faults) Code(c codes.Code) { x.set(func() { x.code = c }) }

// LateBy sets how long after its failure a late write is applied; 100 ms at first.
func (x *Faults) LateBy(d time.Duration) { x.set(func() { x.lateBy, x.held = d, false }) }

// HoldLate keeps late writes back until ReleaseLate.
func (x *Faults) HoldLate() { x.set(func() { x.held = true }) }

// ReleaseLate applies the late writes that are held back.
func (x *Faults) ReleaseLate() {
	x.set(func() {
		close(x.release)
		x.release = make(chan struct{})
	})
}

// LateWaiting returns how many late writes are not applied yet.
func (x *Faults) LateWaiting() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.waiting
}

// Next injects a fault into the next n writing calls, ahead of any odds. Further calls of Next
// append to the list.
func (x *Faults) Next(kind Kind, n int) {
	x.set(func() {
		for range n {
			x.next = append(x.next, kind)
		}
	})
}

// Outage refuses every call with UNAVAILABLE for d of real time; d = 0 is until Recover.
func (x *Faults) Outage(d time.Duration) {
	x.set(func() {
		x.down, x.downTill = true, time.Time{}
		if d > 0 {
			x.downTill = time.Now().Add(d)
		}
	})
}

// Recover ends an outage.
func (x *Faults) Recover() { x.set(func() { x.down = false }) }

// Latency delays every call by d plus up to jitter. A write is applied even if its caller gives up
// meanwhile.
func (x *Faults) Latency(d, jitter time.Duration) { x.set(func() { x.latency, x.jitter = d, jitter }) }

// RefuseRow refuses writes to rows with this key prefix, n times; n < 0 is until Calm. Other
// entries of the same bulk call are applied.
func (x *Faults) RefuseRow(prefix []byte, code codes.Code, n int) {
	x.set(func() { x.rows = append(x.rows, &rowRefusal{prefix: bytes.Clone(prefix), code: code, left: n}) })
}

// Replicated makes the instance one of several clusters: rules that keep cells longer are refused
// unless the caller ignores warnings.
func (x *Faults) Replicated(on bool) { x.set(func() { x.replicas = on }) }

// RefuseSettings refuses the next n calls that ask for a table's families and rules or for an app
// profile; n < 0 is until Calm, n = 0 ends it.
func (x *Faults) RefuseSettings(code codes.Code, n int) {
	x.set(func() { x.settings = &rowRefusal{code: code, left: n} })
}

// HoldSettings keeps back the answers of RefuseSettings's calls until release is called.
func (x *Faults) HoldSettings() (release func()) {
	held := make(chan struct{})
	x.set(func() { x.asked = held })
	return sync.OnceFunc(func() { close(held) })
}

// ShowRule makes the next n descriptions of tables that have a family show another rule of it.
func (x *Faults) ShowRule(family string, rule *btapb.GcRule, n int) {
	x.set(func() { x.shown = &shownRule{family: family, rule: rule, left: n} })
}

// ShownLeft returns how many descriptions are still to show the rule of ShowRule.
func (x *Faults) ShownLeft() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.shown.left
}

// misreport changes a description as set by ShowRule.
func (x *Faults) misreport(t *btapb.Table) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shown
	if cf := t.ColumnFamilies[s.family]; cf != nil && s.left > 0 {
		s.left--
		cf.GcRule = s.rule
	}
}

// admitSetting waits while HoldSettings keeps a call back, and returns the error of a call that
// RefuseSettings refuses.
func (x *Faults) admitSetting(ctx context.Context) error {
	x.mu.Lock()
	held := x.asked
	x.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.settings
	if r == nil || r.left == 0 {
		return nil
	}
	r.left--
	return status.Error(r.code, "sandbox: setting refused")
}

// MultiCluster makes an app profile one with multi-cluster routing: it takes no
// CheckAndMutateRow and no ReadModifyWriteRow.
func (x *Faults) MultiCluster(profile string) { x.set(func() { x.profiles[profile] = true }) }

// FailOver makes the app profiles name another cluster, which has the same rows here. At first it
// is "sandbox".
func (x *Faults) FailOver(cluster string) { x.set(func() { x.cluster = cluster }) }

// RouteTo makes one app profile name another cluster, which has the same rows here.
func (x *Faults) RouteTo(profile, cluster string) {
	x.set(func() {
		if x.routed == nil {
			x.routed = map[string]string{}
		}
		x.routed[profile] = cluster
	})
}

func (x *Faults) clusterID(profile string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return cmp.Or(x.routed[profile], x.cluster, "sandbox")
}

// InOrder applies the entries of bulk calls in the order given, as the bare emulator
// does; the service promises none.
func (x *Faults) InOrder(on bool) { x.set(func() { x.inOrder = on }) }

// Calm ends all faults; late writes that were held are applied.
func (x *Faults) Calm() {
	x.ReleaseLate()
	x.set(func() {
		x.odds, x.code, x.lateBy, x.held, x.next = Odds{}, codes.Unavailable, 100*time.Millisecond, false, nil
		x.down, x.latency, x.jitter, x.rows, x.profiles, x.inOrder = false, 0, 0, nil, map[string]bool{}, false
		x.settings, x.shown, x.routed, x.replicas = nil, &shownRule{}, nil, false
	})
}

// admit is called first for every call. It returns UNAVAILABLE during an outage, and otherwise
// waits for the injected latency; if the caller gives up meanwhile, it returns the error of the
// caller's context.
func (x *Faults) admit(ctx context.Context) error {
	x.mu.Lock()
	down := x.down && (x.downTill.IsZero() || time.Now().Before(x.downTill))
	wait, jitter := x.latency, x.jitter
	x.mu.Unlock()
	if down {
		return status.Error(codes.Unavailable, "sandbox: outage")
	}
	if jitter > 0 {
		wait += time.Duration(x.front.randomBelow(int(jitter)))
	}
	if wait > 0 && clock.Pause(ctx, wait) != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return nil
}

// draw returns the fault of one writing call, "" for none.
func (x *Faults) draw() Kind {
	x.mu.Lock()
	if len(x.next) > 0 {
		kind := x.next[0]
		x.next = x.next[1:]
		x.mu.Unlock()
		return kind
	}
	odds := x.odds
	x.mu.Unlock()
	switch f := x.front; {
	case f.chance(odds.Refuse):
		return Refuse
	case f.chance(odds.Ambiguous):
		return Ambiguous
	case f.chance(odds.Late):
		return Late
	}
	return ""
}

// injected returns the error of an injected failure.
func (x *Faults) injected(what string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return status.Error(x.code, "sandbox: "+what)
}

// refuseRow returns the error of a write to a row that RefuseRow refuses, and counts it.
func (x *Faults) refuseRow(key []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, r := range x.rows {
		if r.left != 0 && bytes.HasPrefix(key, r.prefix) {
			r.left--
			return status.Error(r.code, "sandbox: row refused")
		}
	}
	return nil
}

// checkProfile returns the error of a single-row transaction on an app profile that does not allow
// it.
func (x *Faults) checkProfile(name string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.profiles[name] {
		return status.Errorf(codes.FailedPrecondition,
			"Single-row transactions are not allowed by this app profile: %q", name)
	}
	return nil
}

// describeProfile returns the app profile of a name, in accordance with checkProfile. Every name
// has one.
func (x *Faults) describeProfile(name string) *btapb.AppProfile {
	_, id, _ := strings.Cut(name, "/appProfiles/")
	out := &btapb.AppProfile{Name: name}
	if x.checkProfile(id) != nil {
		out.RoutingPolicy = &btapb.AppProfile_MultiClusterRoutingUseAny_{
			MultiClusterRoutingUseAny: &btapb.AppProfile_MultiClusterRoutingUseAny{},
		}
	} else {
		out.RoutingPolicy = &btapb.AppProfile_SingleClusterRouting_{
			SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{
				ClusterId: x.clusterID(id), AllowTransactionalWrites: true,
			},
		}
	}
	return out
}

// applyLate applies a write when late writes are due. The write is dropped if the front closes
// first.
func (x *Faults) applyLate(write func(ctx context.Context)) {
	x.mu.Lock()
	wait, held, release := x.lateBy, x.held, x.release
	x.waiting++
	x.mu.Unlock()
	ctx := x.front.ctx
	x.front.late.Go(func() error {
		defer x.set(func() { x.waiting-- })
		if held {
			select {
			case <-release:
			case <-ctx.Done():
			}
		} else if clock.Pause(ctx, wait) != nil {
			return nil // the front is closing: no client can see the write
		}
		if ctx.Err() == nil {
			write(ctx)
		}
		return nil
	})
}

// currentOdds returns the odds in force.
func (x *Faults) currentOdds() Odds {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.odds
}

// ordered reports whether bulk entries are applied in order.
func (x *Faults) ordered() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.inOrder
}
