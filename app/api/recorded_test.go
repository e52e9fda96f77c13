package api

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// TestLongPathsAreOnRecord: who is refused something cannot stay out of the audit by naming
// it at length.
func TestLongPathsAreOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var name strings.Builder // it does not compress
	for i := uint32(1); name.Len() < 50_000; i = i*1664525 + 1013904223 {
		name.WriteByte(letters[(i>>16)%uint32(len(letters))])
	}
	w.call(w.user, del, "/v2/users/"+name.String(), "").want(403)
	var objects []string
	w.must(w.db.Select(&objects, `SELECT object FROM audit WHERE result = 'refused' AND actor = 'ana' AND verb = 'delete' AND kind = 'user'`))
	if len(objects) != 1 || len(objects[0]) > loom.MaxRecorded || !strings.HasPrefix(objects[0], "users/"+name.String()[:200]) {
		t.Errorf("on record are %q", objects)
	}
}
