// Package dist tests what `make release` left in dist/: that all of it is there, that it is what it says it is, and
// that all of it is of one version. `make release` runs it at its end; elsewhere, without DIST, the tests skip
// themselves.
//
// Files, from the top down:
//
//	dist_test.go     what is there, checksums, signatures, programs, SBOMs, the formula
//	packages_test.go Debian and RPM packages
//	image_test.go    the image
//	open_test.go     opens archives and packages
package dist
