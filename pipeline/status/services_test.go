package status

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestServiceFailsFromItsFirstFailureToItsNextSuccess(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	s := &Services{}
	var changes []string
	s.OnChange(func(c ServiceChange) {
		changes = append(changes, fmt.Sprint(c.Service, " ", c.Back, " ", c.After, " ", c.Err))
	})
	at := func(d time.Duration) time.Time { return now.Add(d) }
	away, read, list := errors.New("refused"), operation{DynamoDB, "GetRecords"}, operation{DynamoDB, "DescribeStream"}
	s.report(read, nil, now)
	s.report(list, away, at(time.Second))
	s.report(list, away, at(2*time.Second))
	s.report(read, away, at(2*time.Second))
	s.report(read, away, at(60*time.Second))
	s.report(operation{NATS, ""}, away, at(3*time.Second))
	if all := s.Failures(at(time.Minute)); len(all) != 2 || all[0].Service != DynamoDB ||
		!all[0].Since.Equal(at(time.Second)) || all[1].Service != NATS {
		t.Errorf("failures %+v, want DynamoDB since the first of its operations failed, and NATS", all)
	}
	s.report(list, nil, at(61*time.Second))
	if all := s.Failures(at(time.Minute)); len(all) != 2 || !all[0].Since.Equal(at(2*time.Second)) {
		t.Errorf("failures %+v, want that of the reads, although the listings succeed", all)
	}
	count := func(now time.Time) (n int) {
		for _, f := range s.Failures(now) {
			if f.Lasts(now) {
				n++
			}
		}
		return n
	}
	if n, m := count(at(6*time.Second)), count(at(7*time.Second)); n != 0 || m != 1 {
		t.Errorf("%d failures count after 4 s, %d after 5 s, want none that a retry may fix, and then "+
			"that of the reads", n, m)
	}
	if all := s.Failures(at(60*time.Second + failureMemory)); len(all) != 1 || all[0].Service != DynamoDB {
		t.Errorf("failures %+v, want only the operation that was tried of late", all)
	}
	s.answered(DynamoDB).Store(int64(at(2 * time.Minute).Sub(processStart)))
	if all := s.Failures(at(3*time.Minute + time.Second)); len(all) != 1 || all[0].Service != NATS {
		t.Errorf("failures %+v, want none of an operation that nobody tries any more while others are answered", all)
	}
	s.report(read, away, at(150*time.Second))
	if all := s.Failures(at(3*time.Minute + time.Second)); len(all) != 2 {
		t.Errorf("failures %+v, want that of the reads, although another operation was answered", all)
	}
	s.report(read, nil, at(time.Hour))
	s.report(operation{NATS, ""}, nil, at(time.Hour))
	if s.failing.Load() != 0 {
		t.Error("something fails after all have succeeded")
	}
	want := []string{
		"DynamoDB false 59s refused", "DynamoDB true 59m59s <nil>", // not before its last operation has succeeded
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// A call that failed once and is not tried again, as that of a table which another process carries
// now, is no outage, and hides none.
func TestOneFailureIsNoOutage(t *testing.T) {
	now := time.Now()
	s := &Services{}
	var changes []string
	s.OnChange(func(c ServiceChange) { changes = append(changes, fmt.Sprint(c.Back, " ", c.After, " ", c.Err)) })
	describe, read := operation{DynamoDB, "DescribeTable"}, operation{DynamoDB, "GetRecords"}
	second := 0
	call := func(op operation, err error) {
		at := now.Add(time.Duration(second) * time.Second)
		if err == nil {
			s.answered(DynamoDB).Store(int64(at.Sub(processStart)))
		}
		s.report(op, err, at)
	}
	call(describe, errors.New("time-out"))
	for ; second < 600; second++ {
		call(read, nil)
	}
	for ; second < 620; second++ {
		call(describe, errors.New("away"))
	}
	for ; second < 900; second++ { // another process describes the table
		call(read, nil)
	}
	for ; second < 920; second++ {
		call(read, errors.New("refused"))
	}
	call(read, nil)
	if s.failing.Load() != 0 {
		t.Error("calls that nobody makes any more count as failing")
	}
	want := []string{"false 5s away", "true 2m20s <nil>", "false 5s refused", "true 20s <nil>"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// A listing that failed once is tried again after 10 s. Until then it makes no table not ready, and
// afterwards it does if it failed again, or if another operation fails meanwhile.
func TestFailureThatWasNotTriedAgainIsNoOutage(t *testing.T) {
	now := time.Now()
	s := &Services{}
	describe, read := operation{DynamoDB, "DescribeTable"}, operation{DynamoDB, "GetRecords"}
	lasts := func(at time.Duration) bool {
		all := s.Failures(now.Add(at))
		return len(all) == 1 && all[0].Lasts(now.Add(at))
	}
	s.report(describe, errors.New("time-out"), now)
	if lasts(9 * time.Second) {
		t.Error("a call that failed once is an outage before it was tried again")
	}
	for _, at := range []time.Duration{time.Second, 3 * time.Second} {
		s.report(read, errors.New("away"), now.Add(at))
	}
	if !lasts(9 * time.Second) {
		t.Error("another operation fails for longer than a retry takes, and that is no outage")
	}
	s.report(read, nil, now.Add(9*time.Second))
	s.report(describe, errors.New("time-out"), now.Add(10*time.Second))
	if !lasts(10 * time.Second) {
		t.Error("a call that was tried again in vain is no outage")
	}
}

// A success that is reported while the begin of the failure is still being told is told behind it.
func TestChangesOfAServiceAreToldInOrder(t *testing.T) {
	now := time.Now()
	s := &Services{}
	read := operation{DynamoDB, "GetRecords"}
	told, done := make(chan bool, 2), make(chan struct{})
	s.OnChange(func(c ServiceChange) {
		if !c.Back {
			go func() {
				defer close(done)
				s.report(read, nil, now.Add(7*time.Second))
			}()
			select { // the success gets the time to overtake
			case <-done:
			case <-time.After(100 * time.Millisecond):
			}
		}
		told <- c.Back
	})
	s.report(read, errors.New("away"), now)
	s.report(read, errors.New("away"), now.Add(6*time.Second))
	<-done
	if first, second := <-told, <-told; first || !second {
		t.Errorf("back is told before the failure: %v, %v", first, second)
	}
}
