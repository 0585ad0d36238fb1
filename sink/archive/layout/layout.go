// Package layout names what an archive holds: objects in Hive partitions, and the files that describe them.
//
//	<prefix>/tr_table=Sessions/tr_class=ttl/tr_dt=2026-05-04/tr_hr=23/<first>-<last>-<hash>.parquet
//	<prefix>/_tailrace/Sessions/manifest-000000000042.json
//	<prefix>/_tailrace/Sessions/life-000000000003.json
//
// Readers of partitions leave out names that begin with an underscore, so they see the objects only.
package layout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/transform"
)

// Hour is an hour of deletions, in UTC: hours since 1970.
type Hour int64

// HourOf returns the hour of a time.
func HourOf(t time.Time) Hour { return Hour(t.Unix() / 3600) }

// AdoptHours is how many hours back a start looks, at least, for objects that were created and not
// noted.
const AdoptHours = 72

// Time returns when the hour begins.
func (h Hour) Time() time.Time { return time.Unix(int64(h)*3600, 0).UTC() }

// End returns when the hour ends.
func (h Hour) End() time.Time { return (h + 1).Time() }

// String returns 2026-05-04T23.
func (h Hour) String() string { return h.Time().Format(hourFormat) }

const hourFormat = "2006-01-02T15"

// ParseHour reads what String writes.
func ParseHour(s string) (Hour, error) {
	t, err := time.Parse(hourFormat, s)
	if err != nil {
		return 0, fmt.Errorf("read hour %q: %w", s, err)
	}
	return HourOf(t), nil
}

// MarshalText writes String.
func (h Hour) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads String.
func (h *Hour) UnmarshalText(b []byte) (err error) {
	*h, err = ParseHour(string(b))
	return err
}

// Part is a partition of a table's archive: one class, one hour.
type Part struct {
	Table string
	Class transform.EventClass
	Hour  Hour
}

// Day returns the prefix of all partitions of a class on the day of an hour.
func Day(table string, class transform.EventClass, day Hour) string {
	return fmt.Sprintf("%str_class=%s/tr_dt=%s/", Table(table), class, day.Time().Format(time.DateOnly))
}

// Class returns the prefix of all objects of a class.
func Class(table string, class transform.EventClass) string {
	return fmt.Sprintf("%str_class=%s/", Table(table), class)
}

// Table returns the prefix of all objects of a table.
func Table(table string) string { return "tr_table=" + written(table) + "/" }

// written returns a table's name as it is in the names of objects: itself, save where it has an end
// or a part that stores, or the Go CDK, take for something else. There is an exclamation mark then,
// which no table has in its name.
func written(table string) string {
	name := strings.ReplaceAll(table, "__0x", "_!_0x") // of the CDK: an escaped character
	if strings.HasSuffix(name, ".") {                  // of a path, and Azure has no folders of such a name
		name += "!"
	}
	return name
}

// read returns the table of a name that written returned.
func read(name string) string { return strings.ReplaceAll(name, "!", "") }

// Prefix returns the prefix of the part's objects.
func (p Part) Prefix() string {
	return fmt.Sprintf("%str_hr=%02d/", Day(p.Table, p.Class, p.Hour), p.Hour.Time().Hour())
}

// Object names an object of the part: its first and last entry in the archive's stream, eight
// hexadecimal digits of the last one's hash, and the extension of its format.
func (p Part) Object(first, last uint64, hash, extension string) string {
	return fmt.Sprintf("%s%016d-%016d-%.8s.%s", p.Prefix(), first, last, hash, extension)
}

// ParseObject returns the part of an object; false for a name that is not one of an object.
func ParseObject(name string) (Part, bool) {
	words := strings.Split(name, "/")
	if len(words) != 5 || words[4] == "" {
		return Part{}, false
	}
	var values [4]string
	for i, key := range []string{"tr_table=", "tr_class=", "tr_dt=", "tr_hr="} {
		v, ok := strings.CutPrefix(words[i], key)
		if !ok || v == "" {
			return Part{}, false
		}
		values[i] = v
	}
	at, err := time.Parse(time.DateOnly+"/15", values[2]+"/"+values[3])
	p := Part{Table: read(values[0]), Class: transform.EventClass(values[1]), Hour: HourOf(at)}
	return p, err == nil && strings.HasPrefix(name, p.Prefix())
}

// Manifests returns the prefix of a table's manifests.
func Manifests(table string) string { return Own + written(table) + "/manifest-" }

// Own is the prefix of what is not an object.
const Own = "_tailrace/"

// Manifest returns the name of manifest n.
func Manifest(table string, n uint64) string { return fmt.Sprintf("%s%012d.json", Manifests(table), n) }

// ParseManifest returns the number of a manifest of a table.
func ParseManifest(table, name string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(name, Manifests(table)), ".json"), 10, 64)
	return n, err == nil && name == Manifest(table, n)
}

// Lives returns the prefix of the identities of a table without a target.
func Lives(table string) string { return Own + written(table) + "/life-" }

// Life returns the name of revision n of the identity of a table without a target.
func Life(table string, n int64) string { return fmt.Sprintf("%s%012d.json", Lives(table), n) }

// ParseLife returns the revision of an identity of a table.
func ParseLife(table, name string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(name, Lives(table)), ".json"), 10, 64)
	return n, err == nil && n > 0 && name == Life(table, n)
}

// Probe is the name of the object that shows that a name can be created only once. No table has a
// tilde in its name.
const Probe = Own + "probe~"
