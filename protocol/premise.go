package protocol

import (
	"fmt"
	"slices"
)

// Premise is a setting of an outside system that the replicator relies on, as it was found. There
// is one for each setting that is not as it must be. If the setting cannot be read, Unread has the
// reason.
//
// Rule 15: premises that another system holds are watched while the daemon runs.
type Premise struct {
	Code   string `json:"code"`             // of the setting, one of a fixed set of words: "stream_persist_mode"
	What   string `json:"what"`             // the thing with the setting: a stream, a table, a bucket
	Found  string `json:"found,omitempty"`  // as the outside system spells it
	Wanted string `json:"wanted,omitempty"` // in the same words
	Mend   string `json:"mend,omitempty"`   // the command that sets it right
	Cost   string `json:"cost,omitempty"`   // what happens while it is not as it must be
	Unsafe bool   `json:"unsafe,omitempty"` // what is written under it may be lost or wrong: writing stops
	Notice bool   `json:"notice,omitempty"` // allowed, and worth a line of the log
	Unread string `json:"unread,omitempty"` // why it could not be read, such as a missing permission
}

// Text returns the premise as a sentence for people.
func (p *Premise) Text() string {
	if p.Unread != "" {
		return fmt.Sprintf("%s: %s is not known: %s", p.What, p.Code, p.Unread)
	}
	text := p.State()
	if p.Mend != "" {
		text += ": `" + p.Mend + "`"
	}
	return text
}

// State returns the premise as a sentence without what mends it.
func (p *Premise) State() string {
	text := fmt.Sprintf("%s: %s is %s, and must be %s", p.What, p.setting(), p.Found, p.Wanted)
	switch {
	case p.Code == TableMissing, p.Code == FamilyMissing, p.Code == ProfileMissing:
		text = p.What + " is missing"
	case p.Notice:
		text = fmt.Sprintf("%s: %s is %s, as it may be", p.What, p.setting(), p.Found)
	}
	if p.Cost != "" {
		text += " (" + p.Cost + ")"
	}
	return text
}

// settings are the names of Bigtable's settings in gcloud and in its documentation, by their codes.
var settings = map[string]string{
	FamilyType: "type", FamilyRule: "GC rule", ProfileRouting: "routing", ProfileTransactions: "transactional-writes",
	ProfileIsolation: "isolation", ProfileCluster: "cluster",
}

// setting returns the name of the setting for people; a code without a name of its own is one.
func (p *Premise) setting() string {
	if name := settings[p.Code]; name != "" {
		return name
	}
	return p.Code
}

// Premises are the findings of one reading of the settings.
type Premises []Premise

// Broken returns the settings that are wrong: each makes its table red. It leaves out notices, and
// settings that could not be read.
func (all Premises) Broken() Premises {
	return slices.DeleteFunc(slices.Clone(all), func(p Premise) bool { return p.Unread != "" || p.Notice })
}

// Unsafe returns the first one under which nothing may be written; nil when there is none.
func (all Premises) Unsafe() *Premise {
	i := slices.IndexFunc(all, func(p Premise) bool { return p.Unsafe && p.Unread == "" })
	if i < 0 {
		return nil
	}
	return &all[i]
}
