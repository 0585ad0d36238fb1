package source

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

func TestPaceOfAShard(t *testing.T) {
	now := time.Unix(0, 0)
	p := pace{rate: 5, due: now}
	read := func(kind pageKind) time.Duration {
		now = p.due
		p.readStarted(now)
		p.readSucceeded(now, 5, kind, false, time.Second)
		return p.due.Sub(now)
	}
	for i, step := range []struct {
		kind pageKind
		want time.Duration
	}{
		{full, 200}, {full, 200}, {part, 200}, {empty, 200}, {empty, 200}, {empty, 200}, {empty, 200}, {empty, 200},
		{empty, 400},
		{empty, 800}, {empty, 1000}, {empty, 1000}, {part, 200}, {empty, 200}, {full, 200}, {empty, 200}, {empty, 200},
	} {
		want := step.want * time.Millisecond
		if got := read(step.kind); got > want || got < want*89/100 {
			t.Errorf("step %d: due in %v, not %v", i, got, want)
		}
	}
}

// A shard that gets eight batches a second, at random moments, is read as soon with an idle poll of ten seconds as with
// the least one.
func TestBusyShardIsReadAsSoonWhateverTheIdlePoll(t *testing.T) {
	lags := func(idlePoll time.Duration) (median, p99 time.Duration) {
		random := rand.New(rand.NewPCG(1, 1))
		now := time.Unix(0, 0)
		p := pace{rate: 5, due: now}
		var all []time.Duration
		for batch := now; len(all) < 20_000; {
			kind := empty
			now = p.due
			p.readStarted(now)
			for ; !batch.After(now); kind = part {
				all = append(all, now.Sub(batch))
				batch = batch.Add(time.Duration(random.ExpFloat64() * float64(time.Second) / 8))
			}
			p.readSucceeded(now, 5, kind, false, idlePoll)
		}
		slices.Sort(all)
		return all[len(all)/2], all[len(all)*99/100]
	}
	least, least99 := lags(activePoll)
	median, p99 := lags(10 * time.Second)
	if median > least*11/10 || p99 > least99*11/10 {
		t.Errorf("median %v and p99 %v, with the least idle poll %v and %v", median, p99, least, least99)
	}
}

func TestThrottledShardSlowsDownAndComesBack(t *testing.T) {
	now := time.Unix(0, 0)
	p := pace{rate: 5, due: now}
	for range 100 {
		now = p.due
		p.readStarted(now)
		p.readFailed(now, true)
	}
	if d := p.due.Sub(now); d < 5*time.Second || d > 13*time.Second {
		t.Fatalf("due in %v after a hundred throttles", d)
	}
	for range 60 {
		now = p.due
		p.readStarted(now)
		p.readSucceeded(now, 5, full, false, time.Second)
	}
	if d := p.due.Sub(now); d.Round(time.Millisecond) != 200*time.Millisecond {
		t.Fatalf("due in %v after sixty reads", d)
	}
}

// A closed shard gets nothing new: an empty page in it is no reason to wait.
func TestClosedShardIsReadWithoutPauses(t *testing.T) {
	now := time.Unix(0, 0)
	p := pace{rate: 5, due: now}
	for range 10 {
		now = p.due
		p.readStarted(now)
		p.readSucceeded(now, 5, empty, true, time.Second)
	}
	if d := p.due.Sub(now); d != 200*time.Millisecond {
		t.Fatal(d)
	}
}

// Idle shards that were read at any moments are due at few of them, and none later than the idle poll.
func TestIdleShardsAreDueTogether(t *testing.T) {
	moments := map[time.Time]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		now := time.Unix(0, random.Int64N(int64(time.Second)))
		p := pace{rate: 5, due: now, idle: time.Second, quiet: quietPages}
		p.readSucceeded(now, 5, empty, false, time.Second)
		if wait := p.due.Sub(now); wait > time.Second {
			t.Fatalf("due in %v", wait)
		}
		moments[p.due] = true
	}
	if len(moments) > 25 { // of a second and the tenth that jitter adds
		t.Errorf("due at %d moments", len(moments))
	}
}

// The fuse: idle shards have nothing to lose, a stalled one runs out.
func TestRetentionOfIdleAndStalledShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire()
		w.shard("idle", "", 1)
		s := open(t, w)
		read := func(r *Reader, pages int) {
			for range pages {
				next(t, r).Release()
			}
		}
		if _, ok := s.Retention("T"); ok {
			t.Fatal("known before anything was read")
		}
		idle := s.NewReader(start("idle", change.Position{}))
		defer idle.Close()
		read(idle, 1)
		time.Sleep(5 * time.Hour)
		if left, _ := s.Retention("T"); left.Round(time.Hour) != 19*time.Hour {
			t.Fatalf("%v left of a shard that was not read for 5 h", left)
		}
		read(idle, 200)
		if left, _ := s.Retention("T"); left.Round(time.Minute) != 24*time.Hour {
			t.Fatalf("%v left of an idle shard", left)
		}
		st := start("shardId-00000000946684800000-00000000", after(1))
		st.Clock = change.Version(time.Now().Add(-20 * time.Hour).UnixMilli())
		stalled := s.NewReader(st)
		time.Sleep(2 * idleTime)
		if left, _ := s.Retention("T"); left.Round(time.Hour) != 4*time.Hour {
			t.Fatalf("%v left of a shard that is 20 h behind", left)
		}
		stalled.Close()
		if left, _ := s.Retention("T"); left < 23*time.Hour {
			t.Fatalf("%v left after the reader was closed", left)
		}
	})
}

func TestErrorsHaveClassesAndHints(t *testing.T) {
	for code, want := range map[string]failure.Class{
		"ThrottlingException": failure.Throttled, "ProvisionedThroughputExceededException": failure.Throttled,
		"LimitExceededException": failure.Throttled, "RequestLimitExceeded": failure.Throttled,
		"AccessDeniedException": failure.Denied, "UnrecognizedClientException": failure.Denied,
		"ExpiredTokenException": failure.Denied, "InvalidSignatureException": failure.Denied,
		"ResourceNotFoundException": failure.Gone, "TrimmedDataAccessException": failure.Gone,
		"ValidationException": failure.Fatal, "InternalServerError": failure.Transient,
	} {
		trimmed := code == "TrimmedDataAccessException"
		w := newWire()
		w.script = func(wireCall) *wireReply { return refuse(code, "x") }
		s := open(t, w)
		_, err := s.shardIterator(t.Context(), iteratorRequest())
		if got := Classify(err); got != want {
			t.Errorf("%s: %v, not %v", code, got, want)
		}
		label := want.String()
		if trimmed {
			label = "trimmed"
		}
		if got := classLabel(err); got != label {
			t.Errorf("%s: counted as %s, not %s", code, got, label)
		}
		if Hint(wrap(t.Context(), "read", err)) == "" && want != failure.Fatal && !trimmed {
			t.Errorf("%s: no hint", code)
		}
	}
}

func TestMissingCredentialsAreDenied(t *testing.T) {
	s := open(t, newWire())
	for _, k := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(k, "")
	}
	t.Setenv("HOME", t.TempDir())
	bare, err := Open(t.Context(), Options{Region: "eu-west-1", Endpoint: "http://127.0.0.1:1"}, s.log, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = bare.List(t.Context(), "arn")
	if Classify(err) != failure.Denied || Hint(err) == "" {
		t.Fatalf("%v: %v", Classify(err), err)
	}
}

func TestEndpointWithoutAServerIsTransient(t *testing.T) {
	s := open(t, "http://127.0.0.1:1")
	_, err := s.shardIterator(t.Context(), iteratorRequest())
	if Classify(err) != failure.Transient {
		t.Fatalf("%v: %v", Classify(err), err)
	}
}

func TestDeadlineIsTransientAndCancelIsNot(t *testing.T) {
	for err, want := range map[error]failure.Class{
		fmt.Errorf("x: %w", context.DeadlineExceeded): failure.Transient,
		fmt.Errorf("x: %w", context.Canceled):         failure.Canceled,
		errors.New("x"):                               failure.Fatal,
	} {
		if got := Classify(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestStreamsEndpointFollowsAnEndpointThatIsNotAWS(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                      "",
		"http://127.0.0.1:8000": "http://127.0.0.1:8000",
		"https://dynamodb.eu-west-1.amazonaws.com":             "",
		"https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com": "",
		"https://dynamodb.eu-west-1.api.aws":                   "",
	} {
		if got := (Options{Endpoint: endpoint}).withDefaults().StreamsEndpoint; got != want {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}

func iteratorRequest() *dynamodbstreams.GetShardIteratorInput {
	return (&Reader{start: start("a", change.Position{})}).iteratorInput()
}
