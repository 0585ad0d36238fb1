package embedded

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// store is an embedded store in a directory.
type store struct {
	*testing.T
	o Options
}

// open starts the server and connects to it.
func (s *store) open() (*Server, jetstream.JetStream, error) {
	s.Helper()
	e, err := Start(s.Context(), s.o, NewDiskWatch(s.o, prometheus.NewRegistry()), zap.NewNop())
	if err != nil {
		return nil, nil, err
	}
	s.Cleanup(func() { _ = e.Close() })
	nc, err := nats.Connect("", nats.InProcessServer(e), nats.Token(e.Client().Token))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		s.Fatal(err)
	}
	return e, js, nil
}

// A kill between the two files of a changed stream: the checksum is that of the old description.
// The store opens with the new one and all messages. A flipped byte is no such kill, and neither is
// a description that is cut off: then the stream is left out, with the reason, and nothing of it is
// changed.
func TestStreamThatWasBeingChangedIsKept(t *testing.T) {
	dir := t.TempDir()
	s := &store{t, Options{Dir: dir, MaxBytes: 64 << 20, Volume: volumeOf}}
	e, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log"}, MaxBytes: 1 << 20})
	if err == nil {
		_, err = js.Publish(t.Context(), "log", []byte("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	meta := filepath.Join(dir, "jetstream", "$G", "streams", "LOG", server.JetStreamMetaFile)
	sum := filepath.Join(filepath.Dir(meta), server.JetStreamMetaFileSum)
	old := read(t, sum)
	config := stream.CachedInfo().Config
	config.MaxBytes = 2 << 20
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	changed, good := read(t, meta), read(t, sum)
	if bytes.Equal(old, good) {
		t.Fatal("the checksum did not change")
	}
	lay := func(described, checksum []byte, ago time.Duration) {
		t.Helper()
		now := time.Now()
		for path, b := range map[string][]byte{meta: described, sum: checksum} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			at := now
			if path == sum {
				at = now.Add(-ago)
			}
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, x := range map[string]struct {
		described, checksum []byte
		ago                 time.Duration // how much older the checksum is
	}{
		"a flipped byte":      {bytes.Replace(changed, []byte("2097152"), []byte("2097153"), 1), good, -time.Minute},
		"written in one tick": {changed, old, 0},
		"cut off":             {changed[:len(changed)/2], old, time.Minute},
		"of another stream":   {bytes.Replace(changed, []byte(`"LOG"`), []byte(`"LOC"`), 1), old, time.Minute},
	} {
		lay(x.described, x.checksum, x.ago)
		e, js, err := s.open()
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := js.Stream(t.Context(), "LOG"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if err := WhyUnopened(dir, "LOG"); !errors.Is(err, ErrDescription) {
			t.Errorf("%s: %v", name, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Equal(read(t, sum), x.checksum) {
			t.Errorf("%s: the checksum was replaced", name)
		}
	}
	lay(changed, old, time.Minute)
	e, js, err = s.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if stream, err = js.Stream(t.Context(), "LOG"); err != nil {
		t.Fatal(err)
	}
	if info := stream.CachedInfo(); info.Config.MaxBytes != 2<<20 || info.State.Msgs != 1 {
		t.Errorf("%+v, %+v", info.Config, info.State)
	}
	if !bytes.Equal(read(t, sum), good) {
		t.Error("the checksum is not the one that the server would have written")
	}
}

func volumeOf(string) (Volume, error) { return Volume{Total: 1 << 40, Available: 1 << 40}, nil }

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
