package nats_test

import (
	"net"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	sandbox "github.com/tailrace-cdc/replicator/sandbox/nats"
)

func TestStreamsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	for round := range 2 {
		s, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := nats.Connect(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "log",
			Subjects: []string{"log"}}); err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(t.Context(), "log", []byte("entry"))
		if err != nil || ack.Sequence != uint64(round+1) {
			t.Errorf("round %d: sequence %v, %v", round, ack, err)
		}
		conn.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMessagesOfEightMegabytesAreTaken publishes the largest message that the replicator may send.
func TestMessagesOfEightMegabytesAreTaken(t *testing.T) {
	s, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "log", Subjects: []string{"log"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "log", make([]byte, sandbox.DefaultMaxPayload)); err != nil {
		t.Error(err)
	}
}

// TestFreePortsAreNotTakenAway opens servers side by side while somebody else takes and gives back
// free ports.
func TestFreePortsAreNotTakenAway(t *testing.T) {
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			for range 50 {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				defer func() { _ = l.Close() }()
			}
			s, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0"})
			if err != nil {
				return err
			}
			return s.Close()
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTakenPortIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if s, err := sandbox.Open(sandbox.Options{Addr: l.Addr().String()}); err == nil {
		_ = s.Close()
		t.Error("started on a taken port")
	}
}
