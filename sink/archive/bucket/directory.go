package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/host"
)

// directory is a store of files. The bucket library's own is not used: it is not exclusive, does
// not sync, and skips files that it may not read.
//
// A name appears by link(2), which fails where the name is taken, and links a file that is complete
// and synced. rename would replace what has the name.
type directory struct {
	path string
	root *os.Root // no name leads out of it

	// fault and sync are replaced by tests. fault is called before each step, and its error is the
	// step's.
	fault func(step string) error
	sync  func(*os.File) error
}

func openDirectory(u *url.URL, o Options) (*directory, error) {
	if (u.Host != "" && u.Host != "localhost") || u.Path == "" || u.RawQuery != "" {
		return nil, refused(failure.Rejected, "write file:///directory", "not the URL of a directory")
	}
	d := &directory{
		path: host.FilePath(u.Path), fault: func(string) error { return nil }, sync: (*os.File).Sync,
	}
	if !o.ReadOnly {
		if err := makeDirs(d.path); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, err
	}
	d.root = root
	if !o.ReadOnly {
		if err := d.removeLeftovers(); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	return d, nil
}

// makeDirs makes a directory and those above it, and makes the entries of the new ones durable.
func makeDirs(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !host.SyncsDirectories {
		return nil
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

const (
	fileMode = 0o640
	dirMode  = 0o750
)

// hintReplaced is what to do where the path is another directory than at the start.
const hintReplaced = "mount it again; or restart the replicator, if the directory was replaced on purpose"

// inPlace returns an error if the path is no longer the directory that was opened: a volume was
// unmounted, or mounted over it. The open directory would take objects that no reader finds, or
// list none.
func (d *directory) inPlace() error {
	now, err := os.Stat(d.path)
	if err != nil {
		return err
	}
	opened, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(now, opened) {
		return refused(failure.Missing, hintReplaced, "%s is another directory than at the start", d.path)
	}
	return nil
}

func (d *directory) Create(ctx context.Context, name string, f *os.File, size int64) error {
	return create(ctx, d, name, f, size)
}

func (d *directory) put(ctx context.Context, name string, content *io.SectionReader) error {
	if isTemporary(name) {
		return refused(failure.Rejected, "", "the name belongs to temporary files")
	}
	if err := d.inPlace(); err != nil {
		return err
	}
	// Checked early, so that a retry after a lost answer does not write the whole object again.
	// link decides.
	if err := d.taken(name); err != nil {
		return err
	}
	t, err := d.newTemporary()
	if err != nil {
		return fmt.Errorf("make temporary file: %w", err)
	}
	err = d.fill(ctx, t.file, content)
	if err == nil {
		err = d.link(t.name, name)
	}
	if err == nil {
		err = d.shown(name, t.file, content.Size())
	}
	return errors.Join(err, t.remove()) // a name that was linked keeps its file
}

// shown returns nil if the path shows the file that was written, whole.
//
// Rule 15: a volume that was taken away, or put above the directory, while the file was written
// takes no file that readers will find.
func (d *directory) shown(name string, f *os.File, size int64) error {
	if err := d.fault("show"); err != nil {
		return err
	}
	written, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := os.Lstat(filepath.Join(d.path, filepath.FromSlash(name)))
	if err == nil && (!os.SameFile(written, found) || found.Size() != size) {
		err = refused(failure.Missing, hintReplaced, "%s shows another file than was written", d.path)
	}
	return err
}

// taken returns ErrExists, once the name is durable, if something has it.
func (d *directory) taken(name string) error {
	info, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return refused(failure.Rejected, "move it away", "%s is not a regular file", name)
	}
	// Another process may have linked it and be about to sync: the caller takes ErrExists for
	// stored.
	if err := d.syncAbove(name); err != nil {
		return err
	}
	return ErrExists
}

// fill copies the content to a file and syncs it.
func (d *directory) fill(ctx context.Context, f *os.File, content *io.SectionReader) error {
	buf := make([]byte, 1<<20)
	for at := int64(0); at < content.Size(); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := content.ReadAt(buf[:min(int64(len(buf)), content.Size()-at)], at)
		if n == 0 {
			return fmt.Errorf("read what is to be stored, at byte %d: %w", at, err)
		}
		if err := d.fault("write"); err != nil {
			return err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	if err := d.fault("sync file"); err != nil {
		return err
	}
	return d.sync(f)
}

// link gives a file its name, durably, or returns ErrExists.
func (d *directory) link(temporary, name string) error {
	if err := d.root.MkdirAll(path.Dir(name), dirMode); err != nil {
		return err
	}
	if err := d.fault("link"); err != nil {
		return err
	}
	err := d.root.Link(temporary, name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return d.taken(name)
	case slices.ContainsFunc(host.NoLinks, func(known error) bool { return errors.Is(err, known) }):
		return refused(failure.Fatal, "put the archive on a file system that has hard links", "%w", err)
	case err != nil:
		return err
	}
	return d.syncAbove(name)
}

// syncAbove makes the name durable: its directory, and all above it up to the root, for any of them
// may be new and made by a process that has not synced it. Where nothing is new that costs some 50
// µs each.
func (d *directory) syncAbove(name string) error {
	if !host.SyncsDirectories {
		return nil
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if err := d.fault("sync " + dir); err != nil {
			return err
		}
		f, err := d.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.sync(f), f.Close()); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
	}
}

func (d *directory) Open(ctx context.Context, name string) (Reader, error) {
	op := "open " + name
	if err := checkName(name); err != nil {
		return nil, wrap(ctx, op, err)
	}
	if err := d.inPlace(); err != nil {
		return nil, wrap(ctx, op, err)
	}
	f, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrNotDirectory) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, wrap(ctx, op, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refused(failure.Fatal, "something else has the name of a file of the archive: put the file in its place",
			"not a regular file")
	}
	if err != nil {
		return nil, errors.Join(wrap(ctx, op, err), f.Close())
	}
	return file{f, info.Size()}, nil
}

// file is a Reader.
type file struct {
	*os.File
	size int64
}

func (f file) Size() int64 { return f.size }

func (d *directory) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := d.inPlace()
		if err == nil {
			err = d.walk(ctx, ".", prefix, func(i Info) bool { return yield(i, nil) })
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Info{}, wrap(ctx, "list "+prefix, err))
		}
	}
}

func (d *directory) Close() error { return d.root.Close() }
