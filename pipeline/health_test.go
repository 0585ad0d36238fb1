package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/pipeline/status"
	"github.com/tailrace-cdc/replicator/queue"
	"github.com/tailrace-cdc/replicator/source"
)

// Scripts count the reasons of a status, also where the daemon's own answer is printed.
func TestStatusWithoutReasonsHasAnEmptyList(t *testing.T) {
	s := Summarize("shop", []TableStatus{{Source: "Orders"}})
	s.Fail(nil, nil)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Ready || !strings.Contains(string(text), `"failing":[],"reasons":[]`) {
		t.Errorf("ready %t, %s, want ready, and lists without members", s.Ready, text)
	}
	if s.Fail([]string{"NATS fails"}, nil); s.Ready || len(s.Reasons) != 1 || len(s.Failing) != 1 {
		t.Errorf("%+v, want not ready, because NATS fails", s)
	}
}

// A service that does not accept the credentials is not away: the verdict names what renews them.
func TestRefusedCredentialsAreNotAnOutage(t *testing.T) {
	expired := &source.Error{Op: "read", Class: failure.Transient, Hint: "renew them", Err: errors.New("expired")}
	for _, f := range []struct {
		service string
		err     error
		refuses bool
	}{
		{status.DynamoDB, &smithy.GenericAPIError{Code: "ExpiredTokenException"}, true},
		{status.DynamoDB, &smithy.GenericAPIError{Code: "AccessDeniedException"}, true},
		{status.DynamoDB, &smithy.GenericAPIError{Code: "InternalServerError"}, false},
		{status.DynamoDB, expired, false},
		{status.Bigtable, grpcstatus.Error(codes.Unauthenticated, "no token"), true},
		{status.Bigtable, grpcstatus.Error(codes.Unavailable, "no connection"), false},
		{status.NATS, fmt.Errorf("publish: %w", queue.ErrDenied), true},
		{status.NATS, nats.ErrTimeout, false},
	} {
		refuses, hint := refusal(&status.Failure{Service: f.service, Err: f.err})
		if refuses != f.refuses || refuses && f.service == status.DynamoDB && hint == "" {
			t.Errorf("%s: %v: refuses %t, hint %q", f.service, f.err, refuses, hint)
		}
	}
}

// A loop that has not published for six claims stands still; a table that is not owned may be
// silent.
func TestLoopThatStandsStillIsNotLive(t *testing.T) {
	o := Options{Tables: []Table{{Source: "Orders", Target: "orders"}}, Periods: Periods{ClaimTTL: time.Second}}
	p := New(o, nil, &queue.Queue{}, nil, zap.NewNop(), nil)
	v := p.tables[0].view
	for _, tt := range []struct {
		silent time.Duration
		owning bool
		live   bool
	}{{5 * time.Second, true, true}, {7 * time.Second, true, false}, {7 * time.Second, false, true}} {
		v.publish(func(s *snapshot) {
			s.seen, s.phase = status.Unseen("Orders", "orders", time.Now().Add(-tt.silent)), phaseClaimed
			if tt.owning {
				s.phase = phaseWorking
			}
		})
		if err := p.Live(); (err == nil) != tt.live {
			t.Errorf("silent for %s, owning %t: %v, want live %t", tt.silent, tt.owning, err, tt.live)
		}
	}
}

// A stand-by is well as long as the owner's log grows, and says so when it does not.
func TestStandByTellsASilentOwner(t *testing.T) {
	v := &tableView{env: &env{o: &Options{Periods: Periods{ClaimTTL: 15 * time.Second}}}}
	now := time.Now()
	for silent, want := range map[time.Duration]int{30 * time.Second: 0, time.Minute: 1} {
		st := v.standBy(&rival{owner: "other", moved: now.Add(-silent)}, now)
		if st.State != status.StandBy || len(st.Reasons) != want {
			t.Errorf("silent for %s: %s, %q", silent, st.State, st.Reasons)
		}
	}
}

// TestStandByAfterAHaltIsNotRed: a row that was changed by a recovery halts a replica, which reads
// it again and then waits for the owner.
func TestStandByAfterAHaltIsNotRed(t *testing.T) {
	v := &tableView{env: &env{o: &Options{Periods: Periods{ClaimTTL: 15 * time.Second}}}}
	v.publish(func(s *snapshot) { s.halt = &checkpoint.Halt{Reason: "the log is another one"} })
	now := time.Now()
	v.noteRival("other", 1)
	if st := v.status(now); st.State != status.StandBy || len(st.Reasons) > 0 {
		t.Errorf("%s, %q", st.State, st.Reasons)
	}
}

// TestTableThatIsTakenOverIsAsOldAsItsLastSign: before the first look of a new owner, lag and
// retention count from the last sign of the old one, and not from the start of a process that has
// stood by for a day.
func TestTableThatIsTakenOverIsAsOldAsItsLastSign(t *testing.T) {
	o := Options{Tables: []Table{{Source: "Orders", Target: "orders"}}}
	p := New(o, &source.Source{}, &queue.Queue{}, nil, zap.NewNop(), nil)
	v, now := p.tables[0].view, time.Now()
	v.publish(func(s *snapshot) { s.unseen = now.Add(-20 * time.Hour) })
	if st := v.status(now); st.AppliedLag != (20 * time.Hour).Seconds() {
		t.Errorf("lag %v s before anything is known, want 20 h", st.AppliedLag)
	}
	v.noteRival("other", 1)
	v.publish(func(s *snapshot) { s.rival = nil }) // claimed
	if st := v.status(time.Now()); st.AppliedLag > 60 || st.SourceLag > 60 || len(st.Reasons) != 1 {
		t.Errorf("lags %v s and %v s after the take-over, %q", st.AppliedLag, st.SourceLag, st.Reasons)
	}
}

// TestHaltForTheSameReasonKeepsItsTime: each try halts the table anew; "since" is when it stopped
// working.
func TestHaltForTheSameReasonKeepsItsTime(t *testing.T) {
	v := &tableView{env: &env{log: zap.NewNop(), o: &Options{}}}
	for i, tt := range []struct {
		reason string
		at     change.Millis
		worked bool
		want   change.Millis
	}{
		{reason: "no table", at: 1000, want: 1000}, {reason: "no table", at: 2000, want: 1000},
		{reason: "no permission", at: 3000, want: 3000}, {reason: "no permission", at: 4000, worked: true, want: 4000},
	} {
		if tt.worked {
			v.endHalt()
		}
		v.halt(&checkpoint.Halt{Reason: tt.reason, At: tt.at})
		st := status.Unseen("Orders", "orders", time.Now()).With(status.Now{
			Halt: v.latest().halt, HaltedAt: v.latest().haltedAt,
		}).At(time.Now(), time.Now())
		if !st.Since.Equal(tt.want.Time()) {
			t.Errorf("%d: since %s, want %s", i, st.Since, tt.want.Time())
		}
	}
}
