package checkpoint

import (
	"reflect"
	"testing"
)

// Rule 14: one judge says of each kind of entry, and of each member that decides, what it does to
// rows beside the changes in the log. A kind or a member of a control that is not listed here
// fails.
func TestEveryEntrySaysWhetherItChangesRows(t *testing.T) {
	want := map[Kind]RowsReason{
		KindClaim: RowsByChanges, KindRelease: RowsByChanges, KindStart: RowsByStream, KindGraph: RowsByChanges,
		KindFrame: RowsByChanges, KindBeat: RowsByChanges, KindMarks: RowsByChanges, KindGap: RowsByGap,
		KindControl: RowsByChanges, KindSnapshot: RowsByChanges, KindCopy: RowsByCopy, KindCopyMarks: RowsByCopy,
		KindHealed: RowsByResync,
	}
	for k := range kinds {
		if reason, listed := want[k]; !listed || ChangesRows(newBody(k)) != reason {
			t.Errorf("%s: %q, want %q (listed: %t)", k, ChangesRows(newBody(k)), reason, listed)
		}
	}
	members := map[string]RowsReason{
		"Pause": RowsByChanges, "Halt": RowsByChanges, "Clear": RowsByChanges, "ClearSink": RowsByChanges,
		"Resume": RowsByChanges, "Waive": RowsByChanges, "By": RowsByChanges, "At": RowsByChanges,
		"Copy": RowsByCopyOrder, "Resync": RowsByResync, "Accept": RowsByMapping, "Fence": RowsByChanges,
		"Certify": RowsByChanges, "Verified": RowsByChanges,
	}
	typ := reflect.TypeFor[Control]()
	for i := range typ.NumField() {
		c, f := new(Control), typ.Field(i)
		v := reflect.ValueOf(c).Elem().Field(i)
		switch f.Type.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(f.Type.Elem()))
		case reflect.Bool:
			v.SetBool(true)
		}
		if reason, listed := members[f.Name]; !listed || ChangesRows(c) != reason {
			t.Errorf("a control with %s: %q, want %q (listed: %t)", f.Name, ChangesRows(c), reason, listed)
		}
	}
	for body, reason := range map[any]RowsReason{
		&Graph{Gone: []string{"s"}}:                  RowsByGap,
		&Healed{Exports: []string{"e"}}:              RowsByChanges,
		&Control{Fence: &FenceOrder{Undo: true}}:     RowsByApplication,
		&Control{Resume: true, Copy: new(CopyOrder)}: RowsByCopyOrder,
		&struct{}{}: RowsUnknown,
	} {
		if got := ChangesRows(body); got != reason {
			t.Errorf("%T %+v: %q, want %q", body, body, got, reason)
		}
	}
}
