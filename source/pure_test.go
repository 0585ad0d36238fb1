package source

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/failure"
)

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
		"ExpiredTokenException": failure.Transient, "InvalidSignatureException": failure.Denied,
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
		denied := want == failure.Denied || code == "ExpiredTokenException"
		if Refused(err) != denied || Refused(wrap(t.Context(), "read", err)) != denied {
			t.Errorf("%s: credentials are refused is not %t", code, denied)
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
