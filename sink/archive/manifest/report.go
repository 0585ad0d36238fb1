package manifest

import (
	"maps"
	"slices"

	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/transform"
)

// Kind names what a finding is about.
type Kind string

// The kinds of findings.
const (
	ManifestMissing Kind = "manifest_missing"
	ManifestAltered Kind = "manifest_altered"
	ChainBroken     Kind = "chain_broken"
	ChainCut        Kind = "chain_cut"      // the chain ends before the head that the table's log knows
	ChainForked     Kind = "chain_forked"   // the log knows another manifest of that number
	HeadUnknown     Kind = "head_unknown"   // no log could be asked
	ObjectMissing   Kind = "object_missing" // named by a manifest
	ObjectAltered   Kind = "object_altered"
	ObjectAdded     Kind = "object_added" // in a closed hour, and named by no manifest
	Duplicate       Kind = "duplicate"    // records are in two objects
	Hole            Kind = "hole"         // records between those of two objects are in none
	CountWrong      Kind = "count_wrong"  // the numbers of an hour do not add up
	Uncounted       Kind = "uncounted"    // deletions were not counted independently
	HourMissing     Kind = "hour_missing" // no manifest closes it, but later ones are closed
	HourIncomplete  Kind = "hour_incomplete"
	NothingClosed   Kind = "nothing_closed" // no hour of the time is closed: nothing was compared
)

// Grade is the effect of a finding on the verdict.
type Grade string

// The grades, also the verdicts.
const (
	OK        Grade = "ok"
	Different Grade = "different" // the archive is not what the manifests say
	Unproven  Grade = "unproven"  // nothing is wrong, but not everything could be shown
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Kind     Kind                 `json:"kind"`
	Grade    Grade                `json:"grade"`
	Manifest uint64               `json:"manifest,omitempty"`
	Hour     layout.Hour          `json:"hour,omitempty"`
	Until    layout.Hour          `json:"until,omitempty"` // of hours that are incomplete for one reason: the last one
	Class    transform.EventClass `json:"class,omitempty"`
	Object   string               `json:"object,omitempty"`
	Other    string               `json:"other,omitempty"` // of a duplicate: the first object with the same records
	Text     string               `json:"text"`            // what it means and what to do
}

// Report is what Verify found.
type Report struct {
	Table   string `json:"table"`
	Verdict Grade  `json:"verdict"`
	Depth   Depth  `json:"depth"`
	Head    Head   `json:"head"` // of the chain in the bucket

	// The closed hours that were checked.
	First layout.Hour `json:"first,omitempty"`
	Last  layout.Hour `json:"last,omitempty"`
	Hours int         `json:"hours"`

	Manifests int64 `json:"manifests"`
	Objects   int64 `json:"objects"` // that manifests name
	Bytes     int64 `json:"bytes"`
	Events    int64 `json:"events"`
	Deleted   int64 `json:"deleted"` // by TTL, as the log was seen to hold
	Skipped   int64 `json:"skipped"`
	Letters   int64 `json:"letters"`

	Open int64 `json:"open"` // objects in hours that are not closed yet
	Late int64 `json:"late"` // objects in closed hours that the next manifest names

	// Findings holds the first ones of each kind; Counts counts all.
	Findings []Finding    `json:"findings"`
	Counts   map[Kind]int `json:"counts,omitempty"`
}

// maxFindings is how many findings of a kind a report holds: after the loss of a prefix its first
// names suffice.
const maxFindings = 100

// add records findings and what they do to the verdict.
func (r *Report) add(findings ...Finding) {
	for _, f := range findings {
		if r.Counts == nil {
			r.Counts = map[Kind]int{}
		}
		if r.Counts[f.Kind]++; r.Counts[f.Kind] <= maxFindings {
			r.Findings = append(r.Findings, f)
		}
		if f.Grade == Different || r.Verdict == OK {
			r.Verdict = f.Grade
		}
	}
}

// Kinds returns the kinds of findings in order.
func (r *Report) Kinds() []Kind { return slices.Sorted(maps.Keys(r.Counts)) }
