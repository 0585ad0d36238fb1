package ir

import (
	"github.com/tailrace-cdc/replicator/transform/lang"
)

type FamilyRule struct {
	Family
	History bool // more than the newest version is wanted
	Expires bool
	Removed string
	At      lang.Text
}
