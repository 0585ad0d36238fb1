package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Names of the services that a pipeline depends on: in reasons, and in lower case as a label.
const (
	DynamoDB = "DynamoDB"
	Bigtable = "Bigtable"
	NATS     = "NATS"
)

// Services remembers which services fail, and since when. The packages that make the calls report
// how each one ended. Its zero value is ready for use, by any number of goroutines.
type Services struct {
	failing atomic.Int64 // length of ops: a call that succeeded while nothing fails costs one load

	ordered sync.Mutex // held while a change is found and told, so that "back" never stands before "fails"
	mu      sync.Mutex // covers what follows
	changed func(ServiceChange)
	told    map[string]time.Time // services that were reported as failing, and since when
	ops     map[operation]*Failure
	answers map[string]*atomic.Int64 // by service: nanoseconds from the process's start to its last answer; 0: none yet
}

// processStart is what answers are counted from: a moment on the monotonic clock fits an atomic so.
var processStart = time.Now()

type operation struct{ service, name string }

// Failure is an operation of a service that has not succeeded since it first failed.
type Failure struct {
	Service string
	Since   time.Time
	Err     error

	last  time.Time
	again bool // it failed a second time
}

// Lasts reports whether a failure is more than a call that failed once: it was tried again in vain,
// and has lasted for FailureGrace. A call that failed once, and is tried again later, is no outage.
func (f *Failure) Lasts(now time.Time) bool { return f.again && now.Sub(f.Since) >= FailureGrace }

// FailureGrace is how long an operation must fail before it makes a table not ready: one retry gets
// past most failures.
const FailureGrace = 5 * time.Second

// failureMemory is how long a failure counts while the operation is not tried again: longer than
// the longest pause between two tries of a loop, which is the listing's.
const failureMemory = 10 * time.Minute

// givenUpAfter is the same where the service has answered another call since. A client tries a call
// that fails again within a minute, so no process makes this call any more: another process carries
// the table.
const givenUpAfter = 2 * time.Minute

// Reporter returns the function that a client of the service calls after each call of an operation:
// nil means that the service answered, an error that it did not, or refused everything alike.
func (s *Services) Reporter(service string) func(op string, err error) {
	answered := s.answered(service)
	return func(op string, err error) {
		now := time.Now()
		if err == nil {
			answered.Store(int64(max(1, now.Sub(processStart))))
		}
		s.report(operation{service, op}, err, now)
	}
}

// answered returns when a service answered last.
func (s *Services) answered(service string) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]*atomic.Int64{}
	}
	if s.answers[service] == nil {
		s.answers[service] = &atomic.Int64{}
	}
	return s.answers[service]
}

// Answer is how a service answers this process.
type Answer struct {
	Last    time.Time     // when a call succeeded last; zero: never yet
	Failing time.Duration // since when calls have only failed; 0: the last one succeeded, or there was none
}

// Answers returns how each service answers that this process calls.
func (s *Services) Answers(now time.Time) map[string]Answer {
	all := map[string]Answer{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for service, at := range s.answers {
		a := Answer{}
		if n := at.Load(); n > 0 {
			a.Last = processStart.Add(time.Duration(n))
		}
		for op, f := range s.ops {
			if op.service == service && f.last.After(a.Last) && now.Sub(f.last) <= failureMemory {
				a.Failing = max(a.Failing, min(now.Sub(f.Since), now.Sub(a.Last)))
			}
		}
		all[service] = a
	}
	return all
}

// ServiceChange is the begin or the end of a failure of a service.
type ServiceChange struct {
	Service string
	Back    bool          // every call that failed has succeeded, or is not made any more
	After   time.Duration // since the first failure
	Err     error         // nil when it is back
}

// OnChange calls f when a service has failed for longer than FailureGrace, and when it is back. It
// is called once, before the clients are made.
func (s *Services) OnChange(f func(ServiceChange)) { s.changed = f }

// report notes how a call ended.
func (s *Services) report(op operation, err error, now time.Time) {
	if err == nil && s.failing.Load() == 0 {
		return
	}
	s.ordered.Lock()
	defer s.ordered.Unlock()
	if change := s.note(op, err, now); change != nil && s.changed != nil {
		s.changed(*change)
	}
}

// note is report without the call of OnChange's function: it returns what to call it with, or nil.
func (s *Services) note(op operation, err error, now time.Time) *ServiceChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.ops[op]
	switch {
	case err == nil:
		delete(s.ops, op)
	case f == nil || now.Sub(f.last) > failureMemory:
		if s.ops == nil {
			s.ops = map[operation]*Failure{}
		}
		s.ops[op] = &Failure{Service: op.service, Since: now, Err: err, last: now}
	default:
		f.Err, f.last, f.again = err, now, true
	}
	maps.DeleteFunc(s.ops, func(_ operation, f *Failure) bool { return !s.counts(f, now) })
	s.failing.Store(int64(len(s.ops)))
	return s.change(op.service, err != nil, now)
}

// counts reports whether a failure still counts. The caller holds the mutex.
func (s *Services) counts(f *Failure, now time.Time) bool {
	memory := failureMemory
	if at := s.answers[f.Service]; at != nil && processStart.Add(time.Duration(at.Load())).After(f.last) {
		memory = givenUpAfter
	}
	return now.Sub(f.last) <= memory
}

// change returns what has changed about a service that has to be reported; nil for nothing. A call
// that succeeded begins no failure: another one may have failed once, and not be tried again yet.
// The caller holds the mutex.
func (s *Services) change(service string, failed bool, now time.Time) *ServiceChange {
	var worst *Failure
	for op, f := range s.ops {
		if op.service == service && (worst == nil || f.worse(worst)) {
			worst = f
		}
	}
	since, told := s.told[service]
	switch {
	case worst == nil && told:
		delete(s.told, service)
		return &ServiceChange{Service: service, Back: true, After: now.Sub(since)}
	case worst != nil && failed && !told && worst.Lasts(now):
		if s.told == nil {
			s.told = map[string]time.Time{}
		}
		s.told[service] = worst.Since
		return &ServiceChange{Service: service, After: now.Sub(worst.Since), Err: worst.Err}
	}
	return nil
}

// worse reports whether a failure stands before another one of the service: one that was tried
// again before one that was not, then the longer one.
func (f *Failure) worse(than *Failure) bool {
	if f.again != than.again {
		return f.again
	}
	return f.Since.Before(than.Since)
}

// Failures returns the worst operation for each service with a failing one, ordered by service: of
// those that were tried again in vain the one that has failed longest.
func (s *Services) Failures(now time.Time) (all []Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.ops {
		if !s.counts(f, now) {
			continue
		}
		i, known := slices.BinarySearchFunc(all, f.Service, func(a Failure, name string) int {
			return cmp.Compare(a.Service, name)
		})
		switch {
		case !known:
			all = slices.Insert(all, i, *f)
		case f.worse(&all[i]):
			all[i] = *f
		}
	}
	return all
}

// Sentence returns which service fails, since when, and how.
func (f *Failure) Sentence(now time.Time) string {
	since := f.Since.UTC().Format(time.TimeOnly + "Z")
	return fmt.Sprintf("%s fails since %s (%s): %v", f.Service, since, Ago(now.Sub(f.Since)), f.Err)
}

// Ago returns an age as people say it: 23 h 58 m, 5 m 03 s, 12 s.
func Ago(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return Period(d)
}

// Period returns a duration as people say it: as Ago does, but short ones with tenths, 0.8 s.
func Period(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
