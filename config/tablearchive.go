package config

import (
	"cmp"
	"fmt"
	"strings"
)

// tableArchive checks a table's settings of its archive, and that a table without a target has
// nothing that needs one.
func (r *report) tableArchive(path string, t *Table, a *Archive) {
	own := path + ".archive"
	if r.Written(own) && !r.reported(own) {
		switch {
		case a.URL == "" && a.Subject == "":
			r.fault("missing", own, "archive: {url: \"s3://bucket/prefix\"} beside tables",
				"the archive of %s has no place", t.Source)
		case t.OnTTLExpiry != "archive" && !r.reported(path+".on_ttl_expiry"):
			r.fault("conflict", path+".on_ttl_expiry", "remove one of them",
				"%s is to be archived, and on_ttl_expiry is %s", t.Source, t.OnTTLExpiry)
		}
		if r.Written(own + ".classes") {
			r.archiveClasses(own+".classes", t.Archive.Classes)
		}
		if r.Written(own + ".roll") {
			r.archiveRoll(own+".roll", t.Archive.Roll)
		}
		if r.Written(own + ".columns") {
			r.archiveColumns(own+".columns", t.Archive.Columns, a)
		}
	}
	if !t.ArchivedOnly() || r.reported(path+".target") {
		return
	}
	switch {
	case !r.Written(own):
		r.fault("missing", path+".target",
			"the name of a Bigtable table; or `archive: {}` in its place, if the table is to be archived and no more",
			"%s.target is required", path)
		return
	case a.URL == "" && a.Subject != "":
		// The owner of the log is stored next to the objects.
		r.fault("missing", "archive.url", "archive.url: file:///DIR, s3://…, gs://… or azblob://…, beside archive.subject",
			"%s has no target, and an archive without Bigtable needs objects", t.Source)
	}
	for _, key := range []string{"mapping", "on_gap", "verify"} {
		if r.Written(path + "." + key) {
			r.fault("conflict", path+"."+key, "remove it, or name a target",
				"%s.%s is about the rows in Bigtable, and %s has no target", path, key, t.Source)
		}
	}
	if t.Backfill.From != backfillNone {
		r.fault("conflict", path+".backfill", "remove it, or name a target",
			"items are copied to Bigtable, and %s has no target", t.Source)
	}
}

// needsBigtable reports whether any table is replicated, as one does that lacks its target by
// mistake.
func (r *report) needsBigtable(c *Config) bool {
	for i := range c.Tables {
		if c.Tables[i].ArchivedOnly() && r.Written(tablePath(i)+".archive") {
			continue
		}
		return true
	}
	return len(c.Tables) == 0
}

// settleArchive fills in what follows from a table's archive. A table with an archive in its entry
// is archived, and a table without a target has nothing else.
func (t *Table) settleArchive(written func(string) bool, path string) {
	if written(path + ".archive") {
		t.OnTTLExpiry = cmp.Or(t.OnTTLExpiry, "archive")
		if t.ArchivedOnly() {
			t.Backfill.From = cmp.Or(t.Backfill.From, backfillNone)
		}
	}
	settleColumns(t.Archive.Columns)
}

// ArchiveOf returns what of a table is archived, and how.
func (c *Config) ArchiveOf(t *Table) TableArchive {
	own := t.Archive
	own.Roll = cmp.Or(own.Roll, c.Archive.Roll)
	if own.Classes == nil {
		own.Classes = c.Archive.Classes
	}
	if own.Columns == nil {
		own.Columns = c.Archive.Columns
	}
	return own
}

// longestDirectory is how long a name may be on the file systems of Linux, macOS and Windows.
const longestDirectory = 255

// directoryHint is what to do about a table whose name is longer than that of a directory.
const directoryHint = "archive into a bucket (s3://, gs://, azblob://), or leave the table out of the archive"

// directoryTooLong returns why a table cannot be archived in a directory; "" when it can. Objects
// lie below tr_table=NAME.
func (t *Table) directoryTooLong(a *Archive) string {
	if t.OnTTLExpiry != "archive" || !strings.HasPrefix(a.URL, "file:") && a.File == "" {
		return ""
	}
	if n := len("tr_table=") + len(t.Source); n > longestDirectory {
		return fmt.Sprintf("%s has %d letters: its directory in the archive needs a name of %d, and file systems take %d",
			t.Source, len(t.Source), n, longestDirectory)
	}
	return ""
}
