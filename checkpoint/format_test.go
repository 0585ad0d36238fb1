package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
)

// format1Log is a log as a build of format 1 wrote it, with foreign messages and torn snapshots in between.
func format1Log(t *testing.T) *memLog { return goldenLog(t, 1) }

// The state beside it is what that build folded it to.
func TestLogOfFormat1FoldsAsItAlwaysDid(t *testing.T) {
	l := format1Log(t)
	want, err := os.ReadFile("testdata/format1.state.json")
	if err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*State{"folded": l.fold(t), "restored": l.restored(t)} {
		if d := cmp.Diff(string(bytes.TrimSpace(want)), stateJSON(s)); d != "" {
			t.Errorf("%s: %s", what, d)
		}
		if s.Format != 1 || s.Seq != 67 || s.Hash != HashOf(l.msgs[66]) || s.SnapshotFirst != 62 || s.SnapshotLast != 64 {
			t.Errorf("%s: format %d, entry %d, snapshot %d to %d", what, s.Format, s.Seq, s.SnapshotFirst, s.SnapshotLast)
		}
	}
}

// readableInFormat1 checks that a build of format 1 reads all of a log, and what it would find in it.
func readableInFormat1(t *testing.T, msgs [][]byte) {
	t.Helper()
	for i, m := range msgs {
		e, err := decode(m, 1)
		if errors.Is(err, ErrForeign) {
			continue
		}
		if err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
		if b, ok := e.Body.(*Snapshot); ok && b.Part == 0 && b.Parts == 1 && len(e.Data) > 0 {
			if e.Data[0] != 1 {
				t.Fatalf("entry %d: snapshot of format %d", i+1, e.Data[0])
			}
			b, err := s2.Decode(nil, e.Data[1:])
			if err != nil {
				continue // a foreign message: half an entry
			}
			inFormat1(t, b, reflect.TypeFor[storedState]())
		}
	}
}

// A log that is worked on in format 1 stays readable for a build that reads no more.
func TestLogOfFormat1StaysReadableWithoutUpgrade(t *testing.T) {
	l := format1Log(t)
	w, err := claim(t, l, l.restored(t), "new build", 7)
	if err != nil {
		t.Fatal(err)
	}
	w.must(t, &Graph{Stream: "arn-0", Date: w.s.Date + 1, Complete: true, Shards: []ShardSeen{{ID: "new"}}},
		&Beat{Date: w.s.Date + 2})
	if err := w.snapshot(t, 1<<20); err != nil {
		t.Fatal(err)
	}
	readableInFormat1(t, l.msgs)
	sameState(t, "restored", l.fold(t), l.restored(t))
	again := *w.s
	for _, body := range []any{&Claim{Format: 2}, &Snapshot{Format: 0}} {
		need := (*FormatError)(nil)
		if err := w.s.CheckNext(body); FormatOf(body) > 1 != errors.As(err, &need) {
			t.Errorf("%T: %v", body, err)
		}
	}
	sameState(t, "after the checks", &again, w.s)
}

// Rule 11: wherever a build of format 1 begins to read, it meets an entry that it refuses, before any that it might
// misread.
func TestBuildOfFormat1RefusesAnUpgradedLog(t *testing.T) {
	l := format1Log(t)
	w, err := claim(t, l, l.restored(t), "new build", 7)
	if err != nil {
		t.Fatal(err)
	}
	raised := len(l.msgs)
	if err := w.upgrade(t, 700); err != nil {
		t.Fatal(err)
	}
	if w.s.Format != Format {
		t.Fatalf("format %d after the upgrade", w.s.Format)
	}
	w.must(t, &Beat{Date: w.s.Date + 2})
	if err := w.snapshot(t, 700); err != nil {
		t.Fatal(err)
	}
	for i, m := range l.msgs {
		e, err := decode(m, 1)
		newer := (*NewerFormatError)(nil)
		if refused := errors.As(err, &newer); refused != (i >= raised && (e == nil || e.Kind == KindSnapshot)) {
			t.Errorf("entry %d of %d, upgraded at %d: %v", i+1, len(l.msgs), raised+1, err)
		} else if refused && (newer.Need != Format || newer.Reads != 1 ||
			!strings.Contains(err.Error(), "upgrade the replicator")) {
			t.Errorf("entry %d: %v", i+1, err)
		}
	}
	sameState(t, "restored", l.fold(t), l.restored(t))
	s, err := Restore(w.s.SnapshotFirst, l.msgs[w.s.SnapshotFirst-1:w.s.SnapshotLast])
	if err != nil || s.Format != Format {
		t.Errorf("restored with format %d, %v", s.Format, err)
	}
	fresh := owned(t, ShardSeen{ID: "a"})
	if _, err := decode(fresh.l.msgs[0], 1); !errors.As(err, new(*NewerFormatError)) {
		t.Errorf("first claim of a new log: %v", err)
	}
}

// A snapshot that was torn raises nothing: what follows it is read by those who never saw it.
func TestTornUpgradeRaisesNothing(t *testing.T) {
	l := format1Log(t)
	w, err := claim(t, l, l.restored(t), "new build", 7)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := w.s.UpgradeSnapshot(Format, 700)
	if err != nil || len(parts) < 2 {
		t.Fatal(len(parts), err)
	}
	w.must(t, &Beat{Date: w.s.Date + 1})
	if err := w.appendParts(t, parts[:1]); err != nil {
		t.Fatal(err)
	}
	w.must(t, &Beat{Date: w.s.Date + 2})
	for what, s := range map[string]*State{"writer": w.s, "folded": l.fold(t), "restored": l.restored(t)} {
		if s.Format != 1 {
			t.Errorf("%s: format %d", what, s.Format)
		}
	}
	if err := w.upgrade(t, 700); err != nil || w.s.Format != Format {
		t.Errorf("again: %v, format %d", err, w.s.Format)
	}
}

// An entry that contradicts the log's format was not written by a build that follows the rules.
func TestEntryAboveTheFormatOfItsLogIsCorrupt(t *testing.T) {
	l := format1Log(t)
	w, err := claim(t, l, l.restored(t), "new build", 7)
	if err != nil {
		t.Fatal(err)
	}
	w.epoch++
	msg := w.message(t, &Claim{Owner: "wrong", Format: 2}, nil)
	if _, err := w.s.Apply(w.s.Seq+1, msg); !errors.As(err, new(*CorruptError)) {
		t.Errorf("claim of format 2: %v", err)
	}
	w = owned(t, ShardSeen{ID: "a"})
	msg = w.message(t, &Snapshot{Parts: 1}, nil)
	if _, err := w.s.Apply(w.s.Seq+1, msg); !errors.As(err, new(*CorruptError)) {
		t.Errorf("snapshot of format 1 in a log of format 2: %v", err)
	}
}

// members1 are the members that a build of format 1 knows, by type.
var members1 = map[string]string{
	"Claim": "owner life identity", "Identity": "pipeline table table_id mapping", "Release": "",
	"Start": "stream mode at date floor shards", "ShardSeen": "id parent closed",
	"Graph": "stream date complete disabled shards gone", "Frame": "pages",
	"PageHead": "feed from to clock_from clock done date oldest newest records offset length", "Feed": "stream shard",
	"Position": "after at",
	"Beat":     "date listed through", "Marks": "sinks retired", "Mark": "seq hash",
	"Gap": "feed from since until reason found ends accepted", "Control": "pause halt clear resume by at",
	"Halt":     "sink seq code reason at",
	"Snapshot": "part parts first",
	"storedState": "epoch owner nonce released life identity streams shards marks gaps paused halted date listed " +
		"last_frame changes top horizons foreign",
	"Stream": "arn date mode at floor disabled seq", "Watermark": "seq through",
	"storedShard": "id stream parent phase pos clock through closed gapped horizon excused seen absent alive ended early",
}

func member(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// inFormat1 checks that JSON of a type has only members that a build of format 1 knows.
func inFormat1(t *testing.T, b []byte, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer:
		inFormat1(t, b, typ.Elem())
	case reflect.Map:
		var all map[string]json.RawMessage
		if json.Unmarshal(b, &all) == nil {
			for _, v := range all {
				inFormat1(t, v, typ.Elem())
			}
		}
	case reflect.Slice:
		var all []json.RawMessage
		if json.Unmarshal(b, &all) == nil {
			for _, v := range all {
				inFormat1(t, v, typ.Elem())
			}
		}
	case reflect.Struct:
		var all map[string]json.RawMessage
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		for i := range typ.NumField() {
			if name := member(typ.Field(i)); all[name] != nil {
				inFormat1(t, all[name], typ.Field(i).Type)
			}
		}
		for name := range all {
			if !slices.Contains(strings.Fields(members1[typ.Name()]), name) {
				t.Errorf("%s has the member %q, which format 1 does not know", typ.Name(), name)
			}
		}
	}
}

// An entry whose body has a member that came after format 1 asks for a later format, or an older build would read the
// entry without it.
func TestLaterMembersAskForTheirFormat(t *testing.T) {
	later := 0
	for _, k := range []Kind{KindClaim, KindRelease, KindStart, KindGraph, KindFrame, KindBeat, KindMarks, KindGap,
		KindControl, KindSnapshot} {
		typ := reflect.TypeOf(newBody(k)).Elem()
		eachMember(t, typ, func(owner reflect.Type, f reflect.StructField, only reflect.Value) {
			known := slices.Contains(strings.Fields(members1[owner.Name()]), member(f))
			if !known {
				later++
			}
			if got := FormatOf(only.Addr().Interface()); (got == 1) != known {
				t.Errorf("%s with %s.%s: format %d", typ.Name(), owner.Name(), f.Name, got)
			}
			empty, err := json.Marshal(reflect.New(owner).Interface())
			_, old := members1[owner.Name()] // what an older build knows must not change while the member is not set
			if err != nil || old && !known && bytes.Contains(empty, []byte(`"`+member(f)+`"`)) {
				t.Errorf("%s without %s: %s, %v", owner.Name(), f.Name, empty, err)
			}
		})
	}
	if later == 0 {
		t.Error("no member of a later format was found")
	}
}

// eachMember calls f for each member of a struct and of what it holds, with a value in which only that member is set.
func eachMember(t *testing.T, typ reflect.Type, f func(owner reflect.Type, field reflect.StructField,
	only reflect.Value)) {
	t.Helper()
	for i := range typ.NumField() {
		field := typ.Field(i)
		wrap := func(inner reflect.Value) reflect.Value {
			v := reflect.New(typ).Elem()
			v.Field(i).Set(inner)
			return v
		}
		f(typ, field, wrap(filled(t, field.Type)))
		in, held := field.Type, func(v reflect.Value) reflect.Value { return v }
		switch in.Kind() {
		case reflect.Pointer:
			in = in.Elem()
			held = func(v reflect.Value) reflect.Value { return v.Addr() }
		case reflect.Slice:
			in = in.Elem()
			held = func(v reflect.Value) reflect.Value { return reflect.Append(reflect.Zero(field.Type), v) }
		case reflect.Map:
			in = in.Elem()
			held = func(v reflect.Value) reflect.Value {
				m := reflect.MakeMap(field.Type)
				m.SetMapIndex(filled(t, field.Type.Key()), v)
				return m
			}
		}
		if in.Kind() == reflect.Struct {
			eachMember(t, in, func(owner reflect.Type, leaf reflect.StructField, only reflect.Value) {
				f(owner, leaf, wrap(held(only)))
			})
		}
	}
}

// filled returns a value that is not the zero one.
func filled(t *testing.T, typ reflect.Type) reflect.Value {
	t.Helper()
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(typ, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
		v.SetMapIndex(filled(t, typ.Key()), reflect.Zero(typ.Elem()))
	case reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(t, typ.Field(i).Type))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(Format))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Array:
		v.Index(0).Set(filled(t, typ.Elem()))
	default:
		t.Fatalf("cannot fill %s", typ)
	}
	return v
}
