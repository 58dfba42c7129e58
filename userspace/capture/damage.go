package capture

import (
	"compress/flate"
	"fmt"
	"io"
)

// flateError is what gzip returns for packed data that makes no sense.
type flateError = flate.CorruptInputError

// damage is a record that contradicts the format or itself.
type damage struct{ what string }

func (d *damage) Error() string { return d.what }

func damaged(format string, args ...any) error {
	return &damage{fmt.Sprintf(format, args...)}
}

// cutOff describes a record of which only a part is there. Errors other than the file's end pass as they are.
func cutOff(what string, have, want int, err error) error {
	if noEOF(err) != io.ErrUnexpectedEOF {
		return err
	}
	return damaged("file ends after %d of the %d bytes of %s", have, want, what)
}
