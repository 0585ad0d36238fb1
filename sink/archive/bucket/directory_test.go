package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tailrace-cdc/replicator/failure"
)

func openDir(t testing.TB, dir string, o Options) *directory {
	t.Helper()
	b, err := Open(t.Context(), "file://"+dir, o)
	if err != nil {
		t.Fatalf("%v; %s", err, Hint(err))
	}
	t.Cleanup(func() { b.Close() })
	return b.(*directory)
}

func TestDirectoryConforms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "archive of shop")
	conform(t, func(t *testing.T) Bucket { return openDir(t, dir, Options{}) })
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		info, infoErr := e.Info()
		if err = errors.Join(err, infoErr); err != nil {
			return err
		}
		if info.Mode().Perm()&^map[bool]fs.FileMode{true: dirMode, false: fileMode}[e.IsDir()] != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func leftovers(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, temporaries))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestMain lets the test binary be one of several processes that create the same names.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BUCKET_TEST_CREATE_IN"); dir != "" {
		if err := createMany(dir, os.Getenv("BUCKET_TEST_ID")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const tries = 300

func body(id string) []byte { return bytes.Repeat([]byte(id+"\n"), 5000) }

// createMany waits until its input ends, so that all processes begin at once, creates the names,
// and prints which ones it created.
func createMany(dir, id string) error {
	ctx := context.Background()
	b, err := Open(ctx, "file://"+dir, Options{})
	if err != nil {
		return err
	}
	b.(*directory).sync = func(*os.File) error { return nil } // this is about names, and slow disks exist
	f, err := os.CreateTemp(dir, "scratch-")
	if err != nil {
		return err
	}
	if _, err := f.Write(body(id)); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	for i := range tries {
		name := fmt.Sprintf("objects/%d/%d", i/10, i)
		switch err := b.Create(ctx, name, f, int64(len(body(id)))); {
		case err == nil:
			fmt.Fprintln(os.Stdout, name)
			continue
		case !errors.Is(err, ErrExists):
			return err
		}
		r, err := b.Open(ctx, name)
		if err != nil {
			return err
		}
		all, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err != nil || len(all) != len(body("0")) {
			return fmt.Errorf("%s: the loser found %d bytes, %w", name, len(all), err)
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return b.Close()
}

// TestTwoProcessesCreateOneNameOnce: the bucket library's own directory store let both create it,
// in 193 of 300 tries.
func TestTwoProcessesCreateOneNameOnce(t *testing.T) {
	dir := t.TempDir()
	var out [3]bytes.Buffer
	var wg sync.WaitGroup
	read, write, err := os.Pipe() // the input of all of them, so that it ends for all at once
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "BUCKET_TEST_CREATE_IN="+dir, fmt.Sprintf("BUCKET_TEST_ID=%d", i))
		cmd.Stdin, cmd.Stdout, cmd.Stderr = read, &out[i], os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	if err := errors.Join(write.Close(), read.Close()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	winner := map[string]string{}
	for i := range out {
		for _, name := range strings.Fields(out[i].String()) {
			if w, twice := winner[name]; twice {
				t.Errorf("%s was created by %s and by %d", name, w, i)
			}
			winner[name] = fmt.Sprint(i)
		}
	}
	b := openDir(t, dir, Options{})
	for name, w := range winner {
		if !bytes.Equal(content(t, b, name), body(w)) {
			t.Errorf("%s, created by %s, holds something else", name, w)
		}
	}
	if len(winner) != tries || len(names(t, b, "objects/")) != tries {
		t.Errorf("%d names of %d were created, %d are listed", len(winner), tries, len(names(t, b, "objects/")))
	}
}

// TestLeftoversGoOnlyWithTheirProcess: a process that starts must not remove what another one is
// writing.
func TestLeftoversGoOnlyWithTheirProcess(t *testing.T) {
	dir := t.TempDir()
	writing := openDir(t, dir, Options{})
	crashed := filepath.Join(dir, temporaries, "LEFT")
	want := random(3, 1<<20)
	writing.fault = func(step string) error {
		if step != "sync file" {
			return nil
		}
		if err := os.WriteFile(crashed, []byte("half"), 0o600); err != nil {
			t.Error(err)
		}
		before := leftovers(t, dir)
		openDir(t, dir, Options{ReadOnly: true})
		if after := leftovers(t, dir); !slices.Equal(before, after) {
			t.Errorf("a reader removed of %q all but %q", before, after)
		}
		openDir(t, dir, Options{})
		if after := leftovers(t, dir); len(before) != 2 || len(after) != 1 || after[0] == "LEFT" {
			t.Errorf("there were %q, and the start of another process left %q", before, after)
		}
		return nil
	}
	if err := createBytes(t, writing, "a", want); err != nil || !bytes.Equal(content(t, writing, "a"), want) {
		t.Errorf("create: %v", err)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestFileTakenForALeftoverIsNotUsed: another process may lock, and remove, a temporary file
// between the moment it is made and the moment it is locked.
func TestFileTakenForALeftoverIsNotUsed(t *testing.T) {
	d := openDir(t, t.TempDir(), Options{})
	other, err := d.newTemporary()
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.root.OpenFile(other.name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if kept, err := lock(f); kept || err != nil {
		t.Errorf("a file that another process has locked is used: %v, %v", kept, err)
	}
	if err := other.remove(); err != nil {
		t.Fatal(err)
	}
	if kept, err := lock(f); kept || err != nil {
		t.Errorf("a file without a name is used: %v, %v", kept, err)
	}
}

// TestNameIsDurableBeforeCreateReturns: the directory of the name and all above it are synced, also
// by the one who finds the name taken, for its caller counts the object as stored.
func TestNameIsDurableBeforeCreateReturns(t *testing.T) {
	d := openDir(t, t.TempDir(), Options{})
	var steps []string
	d.fault = func(step string) error {
		steps = append(steps, step)
		return nil
	}
	d.sync = func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		steps = append(steps, fmt.Sprintf("synced a directory: %v", info.IsDir()))
		return f.Sync()
	}
	dir, file := "synced a directory: true", "synced a directory: false"
	for _, want := range [][]string{
		{"write", "sync file", file, "link", "sync a/b", dir, "sync a", dir, "sync .", dir, "show"},
		{"sync a/b", dir, "sync a", dir, "sync .", dir},
	} {
		steps = nil
		if err := createBytes(t, d, "a/b/c", []byte("x")); err != nil && !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		if !slices.Equal(steps, want) {
			t.Errorf("steps %q, want %q", steps, want)
		}
	}
}

// TestFaultLeavesNoPartOfAnObject: after a fault at each step the name is free or holds the whole
// object, the error says what an operator can do, and a second call stores the object or finds it.
func TestFaultLeavesNoPartOfAnObject(t *testing.T) {
	want := random(4, 1<<20+1)
	for _, step := range []string{"write", "sync file", "link", "sync a/b", "sync ."} {
		for errno, class := range map[syscall.Errno]failure.Class{
			syscall.ENOSPC: failure.Fatal, syscall.EACCES: failure.Denied, syscall.EIO: failure.Fatal,
			syscall.EDQUOT: failure.Fatal, syscall.EROFS: failure.Denied, syscall.EINTR: failure.Transient,
		} {
			dir := t.TempDir()
			d := openDir(t, dir, Options{})
			broken, calls := true, 0
			d.fault = func(s string) error {
				if calls++; broken && s == step && (s != "write" || calls == 2) {
					return &os.PathError{Op: s, Path: "x", Err: errno}
				}
				return nil
			}
			err := createBytes(t, d, "a/b/c", want)
			if Classify(err) != class || !errors.Is(err, errno) || (Hint(err) == "") != (class == failure.Transient) {
				t.Errorf("%s, %v: %v, %s, %q", step, errno, err, Classify(err), Hint(err))
			}
			found := names(t, d, "")
			linked := step == "sync a/b" || step == "sync ."
			if linked != (len(found) == 1) || len(leftovers(t, dir)) > 0 {
				t.Errorf("%s: objects %q, temporary files %q", step, found, leftovers(t, dir))
			}
			broken = false
			if err := createBytes(t, d, "a/b/c", want); (len(found) == 1) != errors.Is(err, ErrExists) {
				t.Errorf("%s, again: %v", step, err)
			}
			if !bytes.Equal(content(t, d, "a/b/c"), want) {
				t.Errorf("%s: the object is another one", step)
			}
		}
	}
}

// TestDirectoryThatVanishes: objects must not go to a directory that nobody looks at, nor a listing
// of it be empty.
func TestDirectoryThatVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	d := openDir(t, dir, Options{})
	if err := createBytes(t, d, "a", nil); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		t.Helper()
		_, openErr := d.Open(t.Context(), "a")
		var listErr error
		for _, listErr = range d.List(t.Context(), "") {
			break
		}
		for op, err := range map[string]error{
			"create": createBytes(t, d, "b", nil), "open": openErr, "list": listErr, "probe": Probe(t.Context(), d),
		} {
			if Classify(err) != failure.Missing || Hint(err) == "" || errors.Is(err, ErrNotFound) {
				t.Errorf("%s, %s: %v, %s, %q", what, op, err, Classify(err), Hint(err))
			}
		}
	}
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	refused("moved away")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	refused("another one in its place")
	if _, err := Open(t.Context(), "file://"+dir+"/absent", Options{ReadOnly: true}); Classify(err) != failure.Missing {
		t.Errorf("open to read: %v", err)
	}
}

func TestOddThingsInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir, Options{})
	if err := createBytes(t, d, "a/b", nil); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "x")
	if err := errors.Join(os.WriteFile(outside, nil, 0o600), os.Symlink(outside, filepath.Join(dir, "link")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, class := range map[string]failure.Class{
		"a": failure.Rejected, "a/b/c": failure.Rejected, "link": failure.Rejected, temporaries + "/x": failure.Rejected,
	} {
		if err := createBytes(t, d, name, nil); Classify(err) != class || errors.Is(err, ErrExists) {
			t.Errorf("create %s: %v, %s", name, err, Classify(err))
		}
	}
	if got := names(t, d, ""); !slices.Equal(got, []string{"a/b"}) {
		t.Errorf("listed: %q", got)
	}
	if _, err := d.Open(t.Context(), "a"); Classify(err) != failure.Fatal || Hint(err) == "" {
		t.Errorf("open of a directory: %v, %q", err, Hint(err))
	}
	for _, bad := range []string{"file://host/x", "file:///x?region=y", "file:", "ftp://x/y", "://"} {
		if _, err := Open(t.Context(), bad, Options{}); Classify(err) != failure.Rejected || Hint(err) == "" {
			t.Errorf("%s: %v, %q", bad, err, Hint(err))
		}
	}
}
