package ui_test

import (
	"testing"

	"github.com/a-h/templ"

	"loom/app/testkit/golden"
	"loom/views/ui"
	"loom/views/ui/gallery"
)

// Every component in every state, as the gallery shows it. Lines are broken
// between elements so that a difference can be read.
func TestGolden(t *testing.T) {
	t.Parallel()
	golden.HTML(t, map[string]templ.Component{
		"badges": gallery.Badges(), "buttons": gallery.Buttons(), "messages": gallery.Messages(), "table": gallery.Table(),
		"fields": gallery.Fields(), "choices": gallery.Choices(), "progress": gallery.Progress(), "dag": gallery.DAG(),
		"check": gallery.Check(), "log": gallery.Log(), "facts": gallery.Facts(), "charts": gallery.Charts(),
		"dialog": ui.DialogContent("Delete cluster shop-front"),
	})
}
