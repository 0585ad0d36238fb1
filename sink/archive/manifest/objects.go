package manifest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/tailrace-cdc/replicator/host"
	"github.com/tailrace-cdc/replicator/sink/archive/bucket"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// Content is the content of an object, by its name and footer or from reading all of it.
type Content struct {
	Part     layout.Part
	Coverage coverage.Set
	Events   int64
	Digest   string
}

// ReadContent reads an object: its footer alone, or every event, and then returns their number and
// digest. An error means that the object is damaged, unless its reader failed.
type ReadContent func(ctx context.Context, r io.ReaderAt, size int64, all bool) (*Content, error)

// named is an object that a manifest names.
type named struct {
	part layout.Part
	*Object
	checked bool // else only its coverage is wanted, as that of a neighbor
}

// looked is what looking at an object gave.
type looked struct {
	named
	coverage coverage.Set
	findings []Finding
}

// restore is what to do about most findings.
const restore = "restore it from the bucket's versions or a backup"

// look compares an object with its manifest.
func (v *verifier) look(ctx context.Context, n named) (looked, error) {
	l := looked{named: n}
	wrong := func(kind Kind, text string, args ...any) {
		if n.checked {
			l.findings = append(l.findings, Finding{Kind: kind, Grade: Different, Hour: n.part.Hour, Class: n.part.Class,
				Object: n.Name, Text: n.Name + " " + fmt.Sprintf(text, args...)})
		}
	}
	r, err := v.bucket.Open(ctx, n.Name)
	if errors.Is(err, bucket.ErrNotFound) {
		wrong(ObjectMissing, "is missing, and with it %s: "+restore+
			"; if the bucket's lifecycle deletes old objects, leave their hours out with --from", count(n.Events, "event"))
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("open object: %w", err)
	}
	defer r.Close()
	if r.Size() != n.Bytes {
		wrong(ObjectAltered, "was altered, it has %d bytes in place of %d: "+restore, r.Size(), n.Bytes)
		return l, nil
	}
	from := &noted{ReaderAt: r}
	if n.checked && v.o.Depth != Quick {
		sum, remove, err := v.hash(from, n.Bytes)
		defer remove()
		if err != nil {
			return l, fmt.Errorf("read %s: %w", n.Name, err)
		}
		if sum != n.SHA256 {
			wrong(ObjectAltered, "was altered, its SHA-256 is %.12s… in place of %.12s…: "+restore, sum, n.SHA256)
			return l, nil
		}
	}
	c, err := v.o.Read(ctx, from, n.Bytes, n.checked && v.o.Depth == Full)
	switch failed := from.failed(); {
	case failed != nil:
		return l, fmt.Errorf("read %s: %w", n.Name, failed)
	case ctx.Err() != nil:
		return l, ctx.Err()
	case err != nil:
		wrong(ObjectAltered, "cannot be read (%v): "+restore, err)
		return l, nil
	case c.Part != n.part:
		wrong(ObjectAltered, "holds the %s of %s in table %s, which is not what its name says: "+restore, c.Part.Class,
			c.Part.Hour, c.Part.Table)
	case c.Events != n.Events:
		wrong(ObjectAltered, "holds %s in place of %d: "+restore, count(c.Events, "event"), n.Events)
	case c.Digest != n.Digest:
		wrong(ObjectAltered, "holds other events than its manifest says, by their digest: "+restore)
	}
	l.coverage = c.Coverage
	return l, nil
}

// hash returns the SHA-256 of an object. Where every event will be read after it, and the store is
// far away, it keeps the bytes in a file meanwhile, and has the object read from there; remove
// deletes the file.
func (v *verifier) hash(r *noted, size int64) (sum string, remove func(), err error) {
	h, remove := sha256.New(), func() {}
	to := io.Writer(h)
	if v.o.Depth == Full && v.o.Scratch != "" {
		f, err := host.Unnamed(v.o.Scratch, "archived-*")
		if err != nil {
			return "", remove, fmt.Errorf("make a file in scratch: %w", err)
		}
		remove = func() { _ = f.Close() }
		to = io.MultiWriter(h, f)
		defer func() { r.ReaderAt = f }()
	}
	buffer := make([]byte, min(size, 1<<20))
	section := io.NewSectionReader(r, 0, size)
	if _, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{section}, buffer); err != nil {
		return "", remove, err
	}
	return hex.EncodeToString(h.Sum(nil)), remove, nil
}

// noted remembers why reading failed, so that a store that is away is not taken for a damaged
// object.
type noted struct {
	io.ReaderAt

	mu  sync.Mutex // covers err
	err error
}

func (n *noted) ReadAt(p []byte, at int64) (int, error) {
	got, err := n.ReaderAt.ReadAt(p, at)
	if err != nil && !errors.Is(err, io.EOF) {
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
	}
	return got, err
}

func (n *noted) failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// nameHash identifies a name in a few bytes: an archive of years has millions.
type nameHash [12]byte

func hashName(name string) nameHash {
	sum := sha256.Sum256([]byte(name))
	return nameHash(sum[:12])
}

// unnamed counts the objects of open hours, and reports objects of closed hours that no manifest
// names.
func (v *verifier) unnamed(ctx context.Context, r *Report) error {
	for info, err := range v.bucket.List(ctx, layout.Table(v.table)) {
		if err != nil {
			return fmt.Errorf("list objects of %s: %w", v.table, err)
		}
		if _, ok := v.names[hashName(info.Name)]; ok {
			continue
		}
		part, ok := layout.ParseObject(info.Name)
		first, _ := entriesOf(info.Name)
		switch {
		case !ok:
			r.add(Finding{Kind: ObjectAdded, Grade: Different, Object: info.Name,
				Text: info.Name + " is no object of an archive: another program put it there; " +
					"remove it, readers of partitions may find it"})
		case !v.wants(part.Hour):
		case part.Hour >= v.began && !v.hours.closed(part.Hour):
			r.Open++
		case first > v.last:
			r.Late++
		default:
			r.add(Finding{Kind: ObjectAdded, Grade: Different, Hour: part.Hour, Class: part.Class, Object: info.Name,
				Text: info.Name + " was added to a closed hour, no manifest names it: readers see its events; " +
					"find out who wrote it, and remove it if it was not the replicator"})
		}
	}
	return nil
}

// wants reports whether the objects of an hour are to be verified.
func (v *verifier) wants(h layout.Hour) bool {
	return h >= v.o.From && (v.o.To == 0 || h < v.o.To)
}

// entriesOf returns the first and the last entry of the archive's stream in an object; 0 where its
// name does not say.
func entriesOf(name string) (first, last uint64) {
	words := strings.SplitN(path.Base(name), "-", 3)
	if len(words) != 3 {
		return 0, 0
	}
	first, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return 0, 0
	}
	if last, err = strconv.ParseUint(words[1], 10, 64); err != nil {
		return 0, 0
	}
	return first, last
}
