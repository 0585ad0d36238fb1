package embedded

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/tailrace-cdc/replicator/queue/conn"
)

// A process that is killed while a stream is made leaves a folder that the server cannot open. One
// without a message is set aside with all its files, also when the tombstone of its first sequence
// is already there; one that may hold a message stays, and so does what a deleted stream's folder
// does not cover.
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
	if err := settleLeftovers(dir, zap.NewNop()); err != nil {
		t.Fatal(err)
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

// A checksum that is missing beside a whole description and messages is written again, and the
// stream loses nothing.
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

// A stream whose description is gone, beside its messages, is left out with a reason. All others
// are open, and the server is healthy.
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

// A description that cannot be read now is not damaged. The store is opened again when it can be
// read.
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

// unreadable puts something in a file's place that nobody can open, as if the device was gone. It
// returns what puts the file back.
func unreadable(t *testing.T, path string) (back func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Rename(path, filepath.Join(dir, "kept")))
	must(os.Rename(filepath.Join(dir, "s"), path))
	if _, err := os.Open(path); !errors.Is(err, syscall.ENXIO) {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		must(os.Remove(path))
		must(os.Rename(filepath.Join(dir, "kept"), path))
	}
}

// lastBlock returns the newest block of a stream's folder.
func lastBlock(t *testing.T, folder string) string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	return blocks[len(blocks)-1]
}

// Rule 13: the server deletes a stream that it cannot read when the store is opened. The stream is
// there again, is not taken for a damaged one, and is opened when it can be read.
func TestStreamThatCannotBeReadIsNotDeleted(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG", "OTHER")
	back := unreadable(t, lastBlock(t, folder("LOG")))
	files := names(t, filepath.Join(folder("LOG"), "msgs"))
	e, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), "OTHER"); err != nil {
		t.Error(err)
	}
	e.Check(t.Context())
	if err := WhyUnopened(s.o.Dir, "LOG"); err == nil || errors.Is(err, ErrDescription) {
		t.Errorf("it cannot be read: %v", err)
	}
	if left := names(t, filepath.Join(folder("LOG"), "msgs")); !slices.Equal(left, files) {
		t.Fatalf("left are %v of %v", left, files)
	}
	back()
	e.Check(t.Context())
	await(t, js, "LOG")
	stream, err := js.Stream(t.Context(), "LOG")
	if err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("%v, %v", stream, err)
	}
	if slices.Contains(names(t, s.o.Dir), openingFolder) {
		t.Error("the second names are left")
	}
}

// A kill while the server removes a stream that it could not read.
func TestStreamIsRestoredAfterAKill(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG")
	if err := keepNames(s.o.Dir, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder("LOG")); err != nil {
		t.Fatal(err)
	}
	_, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	if stream, err := js.Stream(t.Context(), "LOG"); err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("%v, %v", stream, err)
	}
}

// A folder that cannot be listed is not one without streams.
func TestUnlistedStoreIsNotEmpty(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG")
	streams := filepath.Dir(folder("LOG"))
	back := unreadable(t, streams)
	if _, _, err := s.open(); err == nil {
		t.Error("opened without its streams")
	}
	back()
	if _, js, err := s.open(); err != nil {
		t.Error(err)
	} else if _, err := js.Stream(t.Context(), "LOG"); err != nil {
		t.Error(err)
	}
}

// After a write has failed the server refuses all writes to the stream. The store is opened again.
func TestStoreIsOpenedAgainAfterARefusedWrite(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG")
	e, js, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	back := unreadable(t, lastBlock(t, folder("LOG")))
	call, cancel := context.WithCancel(t.Context())
	go func() {
		for e.WriteErr("LOG") == nil && t.Context().Err() == nil {
			runtime.Gosched()
		}
		cancel() // the server answers nothing
	}()
	if _, err := js.Publish(call, "LOG", []byte("y"), jetstream.WithRetryAttempts(0)); err == nil {
		t.Fatal("written")
	}
	if err := e.WriteErr("LOG"); err == nil || conn.IsNoSpace(err.Error()) {
		t.Fatal(err)
	}
	back()
	e.Check(t.Context())
	if err := e.WriteErr("LOG"); err != nil {
		t.Fatal(err)
	}
	await(t, js, "LOG")
	if ack, err := js.Publish(t.Context(), "LOG", []byte("y")); err != nil {
		t.Errorf("%v, %v", ack, err)
	}
}

// Rule 13: an input/output error is none of the stream's.
func TestReadErr(t *testing.T) {
	s, folder := storeWithStreams(t, "LOG")
	if err := ReadErr(s.o.Dir, "LOG"); err != nil {
		t.Error(err)
	}
	block := lastBlock(t, folder("LOG"))
	if err := os.WriteFile(block, []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadErr(s.o.Dir, "LOG"); err != nil {
		t.Errorf("damaged: %v", err)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	if err := ReadErr(s.o.Dir, "LOG"); err != nil {
		t.Errorf("lost: %v", err)
	}
	if runtime.GOOS == "linux" {
		if err := os.Symlink("/proc/self/mem", block); err != nil { // nothing is mapped at its beginning
			t.Fatal(err)
		}
		if err := ReadErr(s.o.Dir, "LOG"); !errors.Is(err, syscall.EIO) {
			t.Errorf("input/output error: %v", err)
		}
	}
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
