package route

import "loom/app/loom"

// AdminTry is the page on which a stored template is tried.
func AdminTry(name string) string {
	return join("admin", AdminSegment(loom.KindTemplate), name, "try")
}
