package adminview

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/ui"
)

// FilesModel is the list of files.
type FilesModel struct {
	// List is the filters and the table.
	List []templ.Component
	// Waiting says what the next release of all would change, or is empty.
	Waiting string
}

// NewFileModel is the form of a new file, or of a version that is uploaded.
type NewFileModel struct {
	// Types are what plugins take; none where no provisioner has registered any.
	Types      []ui.Option
	Name, Text string
	Errors     ui.FormErrors
	// FileHelp says how large a file may be, and what an archive must hold.
	FileHelp string
}

// FileModel is the page of a version of a file.
type FileModel struct {
	loom.Resource
	// Versions are all of them, the newest first.
	Versions []loom.Resource
	Content  loom.ResourceContent
	// Text is what the editor holds, Check what a look at it tells.
	Text  string
	Check loom.TextCheck
	Use   loom.ResourceUse
	// Clusters are those whose services were last set up with a version, by its number; 0 for
	// versions that were deleted.
	Clusters map[int][]loom.ResourceCluster
	// Before is the version that Changes are against, lines with a sign; 0 for none.
	Before  int
	Changes []string
	Failed  *FailedTask
	Errors  ui.FormErrors
	Now     time.Time
}

// FailedTask is the task that failed and led to a script.
type FailedTask struct {
	loom.Task
	// Title is the task in words, ClusterName the cluster's name.
	Title, ClusterName string
	// Line of the script is where it failed, 0 where that is not known, Cause what was said.
	Line  int
	Cause string
	// Retrying says that it waits for its next attempt, WhyNot why its operation can't be retried.
	Retrying bool
	WhyNot   string
}

// version gives one of the versions by a condition; nil for none.
func (m *FileModel) version(is func(v *loom.Resource) bool) *loom.Resource {
	for i := range m.Versions {
		if is(&m.Versions[i]) {
			return &m.Versions[i]
		}
	}
	return nil
}

func (m *FileModel) live() *loom.Resource {
	return m.version(func(v *loom.Resource) bool { return v.Live })
}

// states are the badges of the head: which version is in use, and which is staged.
func (m *FileModel) states() []ui.State {
	var states []ui.State
	for _, v := range m.Versions {
		if v.Status() != loom.ResourceInactive {
			s := ui.ResourceState(v.Status())
			s.Word = ui.Version(v.Version) + " " + strings.ToLower(s.Word[:1]) + s.Word[1:]
			states = append(states, s)
		}
	}
	if len(states) == 0 {
		states = append(states, ui.State{Word: "Not in use", Icon: "circle", Tone: ui.ToneIdle})
	}
	return states
}

// editable reports whether the page has an editor.
func (m *FileModel) editable() bool {
	c := m.Content
	return !c.Secret && !c.Binary && !c.Large && m.Format != "archive"
}

// isScript reports whether it is a script of the shell automator, which has a reference.
func (m *FileModel) isScript() bool { return m.Plugin == "shell" && m.Type == "scripts" }

func (m *FileModel) task() string {
	if m.Failed == nil {
		return ""
	}
	return m.Failed.Ref.String()
}

// saves are the attributes of a button that sends the editor.
func saves() templ.Attributes { return templ.Attributes{"form": EditorID} }

// EditorID is the id of the form with the text of a file.
const EditorID = "file-editor"

// buttons are those of the head: what people come for is the first.
func (m *FileModel) buttons() []ui.ButtonModel {
	act := func(label, busy, icon, do string) ui.ButtonModel {
		return ui.ButtonModel{Label: label, Busy: busy, Icon: icon, Submit: true, FormAction: FileSave(do, m.task()), Attrs: saves()}
	}
	switch {
	case m.editable() && m.Failed != nil && m.Failed.WhyNot == "":
		retry := act("Save, release and retry", "Retrying…", "rotate", DoRetry)
		retry.Kind = ui.Primary
		return []ui.ButtonModel{act("Save and release", "Releasing…", "check", DoRelease), retry}
	case m.editable():
		release := act("Save and release", "Releasing…", "check", DoRelease)
		release.Kind = ui.Primary
		return []ui.ButtonModel{release}
	}
	return []ui.ButtonModel{{Label: "Upload new version", Icon: "arrow-up", Kind: ui.Primary, Href: FileNew(m.ResourceRef)}}
}

// menu is what else can be done.
func (m *FileModel) menu() []ui.MenuItem {
	ask := func(label, icon, act string) ui.MenuItem {
		href := FileAct(act, m.ResourceRef, m.Version)
		return ui.MenuItem{Label: label, Icon: icon, Href: href, Attrs: ui.OpensDialog(href)}
	}
	var items []ui.MenuItem
	if m.editable() {
		items = append(items,
			ui.MenuItem{Label: "Save", Icon: "check", Post: FileSave(DoSave, m.task()), Form: EditorID, Attrs: templ.Attributes{"id": "file-save", "aria-keyshortcuts": "Control+S"}},
			ui.MenuItem{Label: "Save and stage", Icon: "clock", Post: FileSave(DoStage, m.task()), Form: EditorID},
			ui.MenuItem{Label: "Upload new version", Icon: "arrow-up", Href: FileNew(m.ResourceRef)})
	} else if !m.Live || !m.Slated {
		items = append(items, ui.MenuItem{Label: "Release " + ui.Version(m.Version), Icon: "check", Post: FileAct(FileRelease, m.ResourceRef, m.Version)})
		if !m.Slated {
			items = append(items, ui.MenuItem{Label: "Stage " + ui.Version(m.Version), Icon: "clock", Post: FileAct(FileStage, m.ResourceRef, m.Version)})
		}
	}
	used := m.Live || m.Slated
	withdraw, remove := ask("Withdraw "+ui.Version(m.Version)+"…", "minus", FileWithdraw), ask("Delete "+ui.Version(m.Version)+"…", "trash", FileDelete)
	remove.Danger, remove.Divider = true, true
	if used {
		remove.WhyNot = "Withdraw it first."
		items = append(items, withdraw)
	}
	return append(items, remove)
}

// field is the editor.
func (m *FileModel) field() ui.FieldModel {
	f := ui.FieldModel{Name: FieldText, Label: "Text of " + m.Name, LabelHidden: true, Kind: ui.FieldCode, Value: m.Text, Rows: 24, Optional: true, Error: m.Errors.For(FieldText), Language: m.Check.Language, SavedBy: "file-save"}
	f.Attrs = templ.Attributes{"hx-post": FileCheck(), "hx-trigger": "input changed delay:400ms", "hx-target": "#" + fileCheckID, "hx-swap": "innerHTML", "hx-include": "closest form", "hx-encoding": "application/x-www-form-urlencoded", "hx-sync": "this:replace"}
	return f
}

const fileCheckID = "file-check"

// nodes counts those of clusters.
func nodes(clusters []loom.ResourceCluster) int {
	n := 0
	for _, c := range clusters {
		n += c.Nodes
	}
	return n
}

// Older counts the nodes and clusters that do not use a version.
func Older(clusters map[int][]loom.ResourceCluster, version int) (machines, of int) {
	seen := map[loom.ClusterID]bool{}
	for v, uses := range clusters {
		if v == version {
			continue
		}
		machines += nodes(uses)
		for _, c := range uses {
			seen[c.Cluster] = true
		}
	}
	return machines, len(seen)
}

// FileKind is what people call a file: "shell script".
func FileKind(ref loom.ResourceRef) string { return ref.Plugin + " " + loom.FileWord(ref.Type) }

// AskModel asks whether to withdraw or delete a version.
type AskModel struct {
	loom.Resource
	Act    string
	Text   string
	Use    loom.ResourceUse
	Button string
	Busy   string
}
