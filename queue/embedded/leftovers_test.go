package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// A process that is killed while a stream is made leaves a folder that the server cannot open. One without a message is
// set aside with all its files, also when the tombstone of its first sequence is already there; one that may hold a
// message stays, and so does what a deleted stream's folder does not cover.
func TestWhatIsLeftOfANewStreamIsSetAside(t *testing.T) {
	dir := t.TempDir()
	tomb, message := blocks(t)
	streams := filepath.Join(dir, "jetstream", "$G", "streams")
	whole := map[string][]byte{server.JetStreamMetaFile: []byte("x"), server.JetStreamMetaFileSum: []byte("x")}
	for name, files := range map[string]map[string][]byte{
		".deleted":     whole,
		"begun":        nil,
		"tombstone":    {"msgs/1.blk": nil, "msgs/2.blk": tomb},
		"cut-off":      {"msgs/2.blk": tomb[:17]},
		"without-sum":  {server.JetStreamMetaFile: []byte("x"), "msgs/1.blk": nil},
		"empty-sum":    {server.JetStreamMetaFile: []byte("x"), server.JetStreamMetaFileSum: nil},
		"has-message":  {server.JetStreamMetaFile: []byte("x"), "msgs/1.blk": message},
		"undescribed":  {"msgs/1.blk": nil, "msgs/2.blk": slices.Concat(tomb, message)},
		"not-a-record": {"msgs/1.blk": bytes.Repeat([]byte("cmp"), 20)},
		"whole":        whole,
	} {
		if err := os.MkdirAll(filepath.Join(streams, name, "msgs"), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range files {
			if err := os.WriteFile(filepath.Join(streams, name, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if unread, err := settleLeftovers(dir, zap.NewNop()); err != nil || len(unread) > 0 {
		t.Fatal(unread, err)
	}
	if left, want := names(t, streams), []string{"has-message", "not-a-record", "undescribed", "whole"}; !slices.Equal(
		left, want) {
		t.Errorf("%v, want %v", left, want)
	}
	aside := names(t, filepath.Join(dir, asideFolder))
	for i, name := range aside {
		aside[i], _, _ = strings.Cut(name, ".")
		if aside[i] == "tombstone" && !bytes.Equal(read(t, filepath.Join(dir, asideFolder, name, "msgs/2.blk")), tomb) {
			t.Error("the folder was changed")
		}
	}
	if want := []string{"begun", "cut-off", "empty-sum", "tombstone", "without-sum"}; !slices.Equal(aside, want) {
		t.Errorf("set aside: %v, want %v", aside, want)
	}
}

// A checksum that is missing beside a whole description and messages is written again, and the stream loses nothing.
func TestChecksumOfAStreamWithMessagesIsWrittenAgain(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG")
	sum := filepath.Join(folder("LOG"), server.JetStreamMetaFileSum)
	good := read(t, sum)
	if err := os.Remove(sum); err != nil {
		t.Fatal(err)
	}
	_, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "LOG")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 || !bytes.Equal(read(t, sum), good) {
		t.Errorf("%d messages", n)
	}
}

// A stream whose description is gone, beside its messages, is left out with a reason. All others are open, and the
// server is healthy.
func TestUnopenedStreamLeavesTheOthersOpen(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG", "OTHER")
	if err := os.Remove(filepath.Join(folder("LOG"), server.JetStreamMetaFile)); err != nil {
		t.Fatal(err)
	}
	e, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Health(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := js.Stream(t.Context(), "OTHER"); err != nil {
		t.Error(err)
	}
	if err := WhyUnopened(s.o.Dir, "LOG"); err == nil || !strings.Contains(err.Error(), server.JetStreamMetaFile) {
		t.Error(err)
	}
	if err := WhyUnopened(s.o.Dir, "NONE"); err != nil {
		t.Error(err)
	}
}

// A description that cannot be read now is not damaged. The store is opened again when it can be read.
func TestStreamIsOpenedWhenItCanBeReadAgain(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG")
	meta := filepath.Join(folder("LOG"), server.JetStreamMetaFile)
	if err := os.Rename(meta, meta+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(meta, 0o700); err != nil { // reading it is an error other than "not there"
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(meta, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	e.Check(t.Context())
	if err := WhyUnopened(s.o.Dir, "LOG"); err == nil {
		t.Fatal("opened")
	}
	if err := os.RemoveAll(meta); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(meta+".away", meta); err != nil {
		t.Fatal(err)
	}
	e.Check(t.Context())
	await(t, js, "LOG")
}

// await asks for a stream until the client has connected again.
func await(t *testing.T, js jetstream.JetStream, stream string) {
	t.Helper()
	for {
		_, err := js.Stream(t.Context(), stream)
		if err == nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// storeWithStreams returns a closed store with streams of one message each, and their folders.
func storeWithStreams(t *testing.T, names ...string) (*store, func(stream string) string) {
	t.Helper()
	s := &store{t, Options{Dir: t.TempDir(), MaxBytes: 64 << 20, Volume: volumeOf}}
	e, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		config := jetstream.StreamConfig{Name: name, Subjects: []string{name}, FirstSeq: 1 << 50}
		_, err := js.CreateStream(t.Context(), config)
		if err == nil {
			_, err = js.Publish(t.Context(), name, []byte("x"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return s, func(stream string) string { return filepath.Join(s.o.Dir, "jetstream", "$G", "streams", stream) }
}

// blocks returns the tombstone of a first sequence and a message, as the server stores them.
func blocks(t *testing.T) (tomb, message []byte) {
	t.Helper()
	_, folder := storeWithStreams(t, "S")
	all, err := filepath.Glob(filepath.Join(folder("S"), "msgs", "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	var content []byte
	for _, path := range all {
		content = append(content, read(t, path)...)
	}
	if len(content) <= 2*leastRecord {
		t.Fatalf("%d bytes in %v", len(content), all)
	}
	return content[:leastRecord], content[leastRecord:]
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
