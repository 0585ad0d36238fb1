package bucket

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/tailrace-cdc/replicator/host"
)

// temporaries is the directory of files that are being written. It is in the archive's own
// directory because link(2) does not cross file systems, and outside of the prefixes of objects
// because readers of those take every file that they find there. No table is called so: names of
// tables have no tilde.
const temporaries = "_tailrace/tmp~"

// isTemporary reports whether a name lies in the directory of temporary files.
func isTemporary(name string) bool {
	return name == temporaries || strings.HasPrefix(name, temporaries+"/")
}

// temporary is a file that is being written. It is locked while its process lives. A file that a
// crash left behind is not locked.
type temporary struct {
	dir  *directory
	name string
	file *os.File
}

func (d *directory) newTemporary() (*temporary, error) {
	if err := d.root.MkdirAll(temporaries, dirMode); err != nil {
		return nil, err
	}
	for {
		name := path.Join(temporaries, rand.Text())
		f, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
		if err != nil {
			return nil, err
		}
		kept, err := lock(f)
		if err == nil && kept {
			return &temporary{d, name, f}, nil
		}
		// A process that is just starting took the file for a leftover, before it was locked.
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// lock locks a file, and reports whether this process holds the lock and the file still has a name.
func lock(f *os.File) (bool, error) {
	if locked, err := host.Lock(f, host.Exclusive); err != nil || !locked {
		return false, err
	}
	return host.HasName(f)
}

// remove takes the temporary name away, while it is still locked.
func (t *temporary) remove() error {
	err := t.dir.root.Remove(t.name)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, t.file.Close())
}

// removeLeftovers removes the temporary files that no process writes.
func (d *directory) removeLeftovers() error {
	dir, err := d.root.Open(temporaries)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(temporaries, e.Name())
		f, err := d.root.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // another user's are that user's to remove
		} else if err != nil {
			return err
		}
		unused, err := lock(f)
		if err == nil && unused {
			err = (&temporary{d, name, f}).remove()
		} else {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
