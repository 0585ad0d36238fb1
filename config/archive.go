package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Archive sets where archival events go: into objects, to a subject, or both.
type Archive struct {
	// Where objects are created: file:///var/archive (relative to this file: file://archive),
	// s3://bucket/prefix, gs://bucket/prefix, azblob://container/prefix. Options follow a question
	// mark, as in s3://b/p?region=eu-west-1. Nothing under it is ever overwritten or deleted:
	// retention is the bucket's lifecycle.
	URL string `yaml:"url"`
	// Directory: the short form of a url file://DIR with format json.
	File string `yaml:"file"`
	// Format of the objects: parquet, or json (JSON lines, compressed). Default: parquet for url,
	// json for file.
	Format string `yaml:"format" jsonschema:"enum=parquet,enum=json"`
	// Which deletions are archived: ttl (by DynamoDB's time to live), user (all others), inferred
	// (without an identity, after the item had expired: time to live in another region's replica).
	Classes []string `yaml:"classes"`
	// Longest time of one object, from 1s to 24h. Longer means fewer and larger objects, and events
	// that appear later.
	Roll Duration `yaml:"roll"`
	// Further columns of Parquet objects, by name: {path: price, type: "decimal(10,2)"}. Columns
	// are only ever added.
	Columns map[string]Column `yaml:"columns"`
	// What happens to events while the archive's stream is full, because the store is away: hold
	// keeps them in the table's log, letter makes them dead letters.
	OnStall string `yaml:"on_stall" jsonschema:"enum=hold,enum=letter"`
	// Limit of the archive's stream of each table: what it can hold while the store is away.
	MaxBytes Size `yaml:"max_bytes"`
	// NATS subject on the log's server.
	Subject string `yaml:"subject"`
}

// Column is a typed column of Parquet objects, taken from an attribute of the item. What does not
// fit the type becomes null there, and is still in the item.
type Column struct {
	// Path of the attribute in the item, as in address.zip. Default: the name of the column.
	Path string `yaml:"path"`
	// string, int64, double, bool, timestamp_s or timestamp_ms (a number of seconds or milliseconds
	// since 1970), decimal(P,S), or json (any value, as DynamoDB's typed JSON).
	Type string `yaml:"type" jsonschema:"required"`
}

// The formats of objects.
const (
	archiveParquet = "parquet"
	archiveJSON    = "json"
)

// Enabled reports whether archival events have a place.
func (a *Archive) Enabled() bool { return cmp.Or(a.URL, a.File, a.Subject) != "" }

// resolve makes URL and File relative to dir. A File is a URL too, so that commands need to look at
// one key.
func (a *Archive) resolve(dir string) {
	if path, ok := strings.CutPrefix(a.URL, "file:"); ok && !strings.HasPrefix(path, "///") {
		path, options, has := strings.Cut(strings.TrimPrefix(path, "//"), "?")
		if plain, err := url.PathUnescape(path); err == nil && path != "" { // else check reports it
			a.URL = resolveURL(plain, dir)
			if has {
				a.URL += "?" + options
			}
		}
	}
	if a.File != "" && a.URL == "" {
		a.URL = resolveURL(a.File, dir)
	}
}

const (
	shortestRoll, longestRoll = Duration(time.Second), Duration(24 * time.Hour)
	// minArchiveSize is the smallest stream of an archive. One entry may take several MiB, and the
	// stream holds everything of an object that is not built yet.
	minArchiveSize Size = 64 << 20
)

// archive checks the archive's place, what goes there, and in which form.
func (r *report) archive(a *Archive) {
	if s := a.Subject; s != "" && !natsSubject.MatchString(s) {
		r.fault("bad_value", "archive.subject", "words joined by dots, without * and >",
			"%q is not a subject that can be published to", s)
	}
	r.archivePlace(a)
	if a.URL != "" {
		r.oneOf("archive.format", a.Format, archiveParquet, archiveJSON)
	}
	r.archiveClasses("archive.classes", a.Classes)
	r.archiveRoll("archive.roll", a.Roll)
	r.oneOf("archive.on_stall", a.OnStall, "hold", "letter")
	r.atLeast("archive.max_bytes", a.MaxBytes, minArchiveSize, minArchiveSize,
		"the archive's stream holds every event of an object that is not complete")
	r.archiveColumns("archive.columns", a.Columns, a)
}

// archiveRoll checks how long an object may be open.
func (r *report) archiveRoll(path string, d Duration) {
	if (d < shortestRoll || d > longestRoll) && !r.reported(path) {
		r.fault("bad_value", path, "1h is the default", "an object is open from 1s to 24h, not %s", d)
	}
}

// archivePlace checks that objects have one place, and that options of objects have objects.
func (r *report) archivePlace(a *Archive) {
	switch {
	case r.Written("archive.url") && a.File != "":
		r.fault("conflict", "archive", "keep url; `file: DIR` is the short form of `url: file://DIR` with `format: json`",
			"archive.url and archive.file exclude each other")
	case a.File != "" && a.Format == archiveParquet:
		r.fault("conflict", "archive.format", "write the directory as url: file://DIR",
			"archive.file holds JSON lines only")
	}
	if strings.Contains(a.URL, "://"+placeholder) {
		r.fault("missing", "archive.url", "s3://BUCKET/PREFIX",
			"archive.url still names a bucket %s…: write the name of yours", placeholder)
	}
	if a.URL != "" && !r.reported("archive.url") {
		if wrong := impossibleStore(a.URL); wrong != "" {
			r.fault("bad_value", "archive.url",
				"file:///DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://CONTAINER/PREFIX", "%s", wrong)
		}
	}
	for _, key := range []string{"format", "roll", "columns"} {
		if path := "archive." + key; a.URL == "" && r.Written(path) && !r.reported("archive.url") {
			r.fault("missing", path, "set archive.url, or remove it", "%s is about objects, and these have no place", path)
		}
	}
}

// impossibleStore returns what is wrong with the URL of a store, "" if nothing is. It repeats no
// URL with a password.
func impossibleStore(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "the URL cannot be read"
	case u.User != nil:
		return "a store's URL has no user and no password: credentials come from the cloud's default chain"
	case u.Fragment != "":
		return "a store's URL has no part behind #: write %23 for the character"
	case u.Scheme == "file" && u.Host == "" && u.Path != "":
		return ""
	case u.Host != "" && slices.Contains([]string{"s3", "gs", "azblob"}, u.Scheme):
		return ""
	}
	return fmt.Sprintf("%q is not the place of objects", text)
}

// archiveClasses checks which deletions are archived.
func (r *report) archiveClasses(at string, classes []string) {
	if len(classes) == 0 && !r.reported(at) {
		r.fault("missing", at, "classes: [ttl] is the default", "no deletions are archived")
	} else if !slices.Contains(classes, "ttl") && !r.reported(at) {
		r.fault("missing", at, "classes: [ttl, "+strings.Join(classes, ", ")+"]",
			"deletions by time to live are always archived, so ttl is one of the classes")
	}
	for i, class := range classes {
		path := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case class == "healed":
			r.fault("bad_value", path, "remove it", "the class healed is made by healing a gap, and not chosen here")
		case slices.Index(classes, class) < i:
			r.fault("duplicate", path, "remove one of them", "%q is listed twice", class)
		default:
			r.oneOf(path, class, "ttl", "user", "inferred")
		}
	}
}

var (
	columnName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,127}$`)
	columnPath  = regexp.MustCompile(`^[^.]+(\.[^.]+)*$`)
	decimalType = regexp.MustCompile(`^decimal\(([0-9]{1,2}), ?([0-9]{1,2})\)$`)
)

// ownColumns are those that every object has.
var ownColumns = []string{
	"id", "deleted_at", "source", "stream", "shard", "sequence", "version", "keys", "item", "expires",
}

// archiveColumns checks names, paths and types of columns.
func (r *report) archiveColumns(at string, columns map[string]Column, a *Archive) {
	if len(columns) > 0 && a.Format == archiveJSON {
		r.fault("conflict", at, "remove them, or write format: parquet",
			"objects of JSON lines have no columns")
	}
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		path, c := at+"."+name, columns[name]
		switch {
		case !columnName.MatchString(name):
			r.fault("bad_value", path, "lower-case letters, digits and _, beginning with a letter, up to 128; "+
				"the attribute's own name belongs into path", "%q is not a name that every reader takes", name)
		case strings.HasPrefix(name, "tr_") || slices.Contains(ownColumns, name):
			r.fault("reserved", path, "choose another name", "every object has a column or a partition of that name")
		}
		if !columnPath.MatchString(c.Path) && !r.reported(path+".path") {
			r.fault("bad_value", path+".path", "names of attributes joined by dots, as in address.zip",
				"%q is not the path of an attribute", c.Path)
		}
		const types = "string, int64, double, bool, timestamp_s, timestamp_ms, decimal(P,S) or json"
		switch {
		case r.reported(path) || r.reported(path+".type"):
		case c.Type == "":
			r.fault("missing", path+".type", types, "a column needs a type")
		case !possibleType(c.Type):
			r.fault("bad_value", path+".type", types, "%q is not the type of a column", c.Type)
		}
	}
}

// possibleType reports whether a column can have the type. A decimal has up to 38 digits, as
// DynamoDB's numbers.
func possibleType(text string) bool {
	if m := decimalType.FindStringSubmatch(text); m != nil {
		precision, _ := strconv.Atoi(m[1]) // digits by the pattern
		scale, _ := strconv.Atoi(m[2])
		return precision >= 1 && precision <= 38 && scale <= precision
	}
	return slices.Contains([]string{"string", "int64", "double", "bool", "timestamp_s", "timestamp_ms", "json"}, text)
}
