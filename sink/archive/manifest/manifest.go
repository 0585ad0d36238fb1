package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// Format is the highest format of a manifest that this build reads, and the one that it writes.
//
// Rule 11: a newer one is refused.
const Format = 1

// Manifest closes hours of a table's archive. What arrives for an hour later is named by a later
// manifest, which names the hour again.
type Manifest struct {
	Format   int    `json:"format"`
	N        uint64 `json:"n"`              // from 1, without holes
	Prev     string `json:"prev,omitempty"` // hash of manifest N-1: the hexadecimal SHA-256 of its bytes
	Pipeline string `json:"pipeline"`
	Table    string `json:"table"`
	// Through is the time up to which every deletion was applied when the manifest was written, in
	// ms since 1970.
	Through change.Millis `json:"through"`
	// Last is an entry of the archive's stream up to which this manifest and earlier ones name all
	// objects of closed hours. An object of such an hour that begins behind it holds late events,
	// and the next manifest names it. 0: the last entry of the objects that are named.
	Last  uint64 `json:"last,omitempty"`
	Hours []Hour `json:"hours"`
}

// Hour is the entry of a manifest for one class in one hour.
type Hour struct {
	Hour    layout.Hour          `json:"hour"`
	Class   transform.EventClass `json:"class"`
	Objects []Object             `json:"objects,omitempty"`
	// Events is the number of events in Objects.
	Events int64 `json:"events"`
	// Deleted, Skipped and Letters are of the class ttl, and of the whole hour as known by now: the
	// deletions found in the log, and how many of them are no events because the mapping does not
	// archive them, or because they are dead letters.
	Deleted int64 `json:"deleted,omitempty"`
	Skipped int64 `json:"skipped,omitempty"`
	Letters int64 `json:"letters,omitempty"`
	// Counted is the number of deletions by TTL that were counted when they were read from
	// DynamoDB, independently of Deleted; nil where that is not known: unproven.
	Counted *int64 `json:"counted,omitempty"`
	// Incomplete are the ids of the gaps and recoveries by which the hour may lack events.
	Incomplete []string `json:"incomplete,omitempty"`
	// Supplement is set when an earlier manifest closed the hour.
	Supplement bool `json:"supplement,omitempty"`
	// Added is set when the hour is so long ago that Deleted, Skipped and Letters count only what
	// came since the last manifest that names the hour: its counts are still true. A retried dead
	// letter may be archived after weeks.
	Added bool `json:"added,omitempty"`
}

// Object is one object of the archive.
type Object struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of its bytes, hexadecimal
	Events int64  `json:"events"`
	Digest string `json:"digest"` // see object.Footer
}

// Head is the end of a chain. It is kept in the table's log too, so that a chain with its end cut
// off is detected.
type Head struct {
	N    uint64 `json:"n"`
	Hash string `json:"hash,omitempty"`
}

// Encode returns the bytes of a manifest, and the head of the chain that ends with it.
func Encode(m *Manifest) ([]byte, Head, error) {
	m.Format = Format
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, Head{}, fmt.Errorf("encode manifest %d: %w", m.N, err)
	}
	b = append(b, '\n')
	return b, Head{N: m.N, Hash: hashOf(b)}, nil
}

// NewerFormatError means that a newer build wrote the manifest.
type NewerFormatError struct{ Need int }

func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("manifest has format %d, this build reads up to %d: use a newer replicator", e.Need, Format)
}

// Decode reads what Encode writes. Error: *NewerFormatError.
func Decode(b []byte) (*Manifest, Head, error) {
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, Head{}, fmt.Errorf("read manifest: %w", err)
	}
	if m.Format > Format {
		return nil, Head{}, &NewerFormatError{Need: m.Format}
	}
	return m, Head{N: m.N, Hash: hashOf(b)}, nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
