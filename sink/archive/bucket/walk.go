package bucket

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// errStop ends a walk when the caller breaks its loop.
var errStop = errors.New("stop")

// walk calls each for every regular file below dir with a name that begins with prefix, in the byte
// order of the names. Files that vanish meanwhile are left out: the archive's owner may let objects
// expire.
func (d *directory) walk(ctx context.Context, dir, prefix string, each func(Info) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f, err := d.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// What is in a directory sorts by the slash behind its name: "a-b" comes before "a/b".
	names := make([]string, len(entries))
	found := make(map[string]fs.DirEntry, len(entries))
	for i, e := range entries {
		names[i] = path.Join(dir, e.Name())
		if e.IsDir() {
			names[i] += "/"
		}
		found[names[i]] = e
	}
	slices.Sort(names)
	for _, name := range names {
		e := found[name]
		switch begins := strings.HasPrefix(name, prefix); {
		case isTemporary(name):
		case e.IsDir() && (begins || strings.HasPrefix(prefix, name)):
			if err := d.walk(ctx, strings.TrimSuffix(name, "/"), prefix, each); err != nil {
				return err
			}
		case begins && e.Type().IsRegular():
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return err
			}
			if !each(Info{Name: name, Size: info.Size()}) {
				return errStop
			}
		}
	}
	return nil
}
