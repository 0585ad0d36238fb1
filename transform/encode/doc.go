// Package encode turns attribute values into the bytes of a cell, and back where nothing is lost. Every encoding is
// deterministic: equal values give equal bytes on every run, whatever order their members came in.
//
// Files, from the top down:
//
//	protobuf.go  one fixed schema of typed values
//	google.go    what Google's migration utility writes
//	decode.go    the inverses
//	types.go     the type sidecar
//	distinct.go  eight bytes that differ for different values, to count distinct values
//	ordered.go   numbers as text that sorts by value
//	json.go      JSON without tags
//	natural.go   the default: text for scalars, tagged JSON for the rest
package encode
