package object

import (
	"encoding/json"
	"fmt"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// Version is the highest version of a footer that this build reads, and the one that it writes.
//
// Rule 11: a newer one is refused.
const Version = 1

// Footer describes what an object holds.
type Footer struct {
	Version     int
	Format      Format
	Pipeline    string
	Part        layout.Part
	Coverage    coverage.Set
	Events      int64
	Digest      string // hexadecimal, see the package
	First, Last uint64 // entries of the archive's stream
	Config      string // Options.Hash of the writer

	frames []int64 // JSON lines: length of each frame
	groups []group // Parquet: row groups
}

// footerJSON is the footer as it is stored.
type footerJSON struct {
	Version  int                  `json:"version"`
	Format   Format               `json:"format"`
	Pipeline string               `json:"pipeline"`
	Table    string               `json:"table"`
	Class    transform.EventClass `json:"class"`
	Hour     layout.Hour          `json:"hour"`
	Coverage coverage.Set         `json:"coverage"`
	Events   int64                `json:"events"`
	Digest   string               `json:"digest"`
	First    uint64               `json:"first"`
	Last     uint64               `json:"last"`
	Config   string               `json:"config"`
	Frames   []int64              `json:"frames,omitempty"`
	Groups   []group              `json:"groups,omitempty"`
}

// group is the bytes of a row group. Their checksum covers what a page's checksum does not: the
// headers of pages, by which a reader allocates memory.
type group struct {
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32"`
}

// MarshalJSON writes the footer as objects hold it.
func (f *Footer) MarshalJSON() ([]byte, error) {
	return json.Marshal(footerJSON{
		Version: f.Version, Format: f.Format, Pipeline: f.Pipeline,
		Table: f.Part.Table, Class: f.Part.Class, Hour: f.Part.Hour,
		Coverage: f.Coverage, Events: f.Events, Digest: f.Digest, First: f.First, Last: f.Last, Config: f.Config,
		Frames: f.frames, Groups: f.groups,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. Error: *NewerVersionError.
func (f *Footer) UnmarshalJSON(b []byte) error {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v.Version > Version {
		return &NewerVersionError{Need: v.Version}
	}
	var j footerJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*f = Footer{
		Version: j.Version, Format: j.Format, Pipeline: j.Pipeline,
		Part:     layout.Part{Table: j.Table, Class: j.Class, Hour: j.Hour},
		Coverage: j.Coverage, Events: j.Events, Digest: j.Digest, First: j.First, Last: j.Last, Config: j.Config,
		frames: j.Frames, groups: j.Groups,
	}
	return nil
}

// NewerVersionError means that a newer build wrote the object.
type NewerVersionError struct{ Need int }

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("object has version %d, this build reads up to %d: use a newer replicator", e.Need, Version)
}
