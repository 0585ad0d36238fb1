package host

import "golang.org/x/sys/windows"

// The errors of the operating system that callers branch on, for errors.Is.
var (
	ErrNoSpace      error = windows.ERROR_DISK_FULL
	ErrQuota        error = windows.ERROR_DISK_QUOTA_EXCEEDED
	ErrFileTooLarge error = windows.ERROR_FILE_TOO_LARGE
	ErrReadOnly     error = windows.ERROR_WRITE_PROTECT
	ErrIO           error = windows.ERROR_IO_DEVICE
	ErrNotDirectory error = windows.ERROR_DIRECTORY
	ErrNameTooLong  error = windows.ERROR_FILENAME_EXCED_RANGE
	ErrAddressInUse error = windows.WSAEADDRINUSE
)

// NoLinks are the errors of a file system that cannot make one more hard link.
var NoLinks = []error{windows.ERROR_INVALID_FUNCTION, windows.ERROR_NOT_SUPPORTED, windows.ERROR_TOO_MANY_LINKS}
