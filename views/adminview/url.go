package adminview

import (
	"strconv"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/route"
)

// EntryUses lists what names an entry.
func EntryUses(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/uses"
}

// EntryJSON shows an entry as JSON with calls of the REST API.
func EntryJSON(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/json"
}

// EntryActivity is who did what to an entry.
func EntryActivity(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/activity"
}

// EntryExport is an entry as a bundle, for download.
func EntryExport(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/export"
}

// EntryDeprecate takes an entry out of what is offered for choosing (POST).
func EntryDeprecate(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/deprecate"
}

// EntryCompare compares two versions of an entry.
func EntryCompare(kind loom.EntityKind, name string) string {
	return route.AdminEntry(kind, name) + "/compare"
}

// Duplicate is the form for a new entry that starts as a copy of another.
func Duplicate(kind loom.EntityKind, name string) string {
	return route.Query(route.AdminNew(kind), "from", name)
}

// ServiceUse asks which template is to use a service.
func ServiceUse(service string) string {
	return route.AdminEntry(loom.KindService, service) + "/use"
}

// ProbeUse asks which hardware or image type is to use what a provider offers.
func ProbeUse(provider string) string {
	return route.AdminEntry(loom.KindProvider, provider) + "/use"
}

// FileNew is the form of a new file, or of the next version of the one that ref names.
func FileNew(ref loom.ResourceRef) string {
	if ref.Type == "" {
		return route.AdminResources() + "/new"
	}
	return route.Query(route.AdminResources()+"/new", FieldPlugin, FileType(ref), FieldName, ref.Name)
}

// FileType is the value by which forms know what uses a file.
func FileType(ref loom.ResourceRef) string { return ref.Kind + "/" + ref.Plugin + "/" + ref.Type }

// File is the page of a version of a file; 0 is the version in use, else the newest.
func File(ref loom.ResourceRef, version int) string {
	return FileAct(FileShow, ref, version)
}

// What is done to a version of a file. To withdraw and to delete are asked (GET) and done (POST).
const (
	FileShow     = "show"
	FileStage    = "stage"
	FileRelease  = "release"
	FileWithdraw = "withdraw"
	FileDelete   = "delete"
)

// FileAct is the address at which something is done to a version of a file, named by further
// fields.
func FileAct(act string, ref loom.ResourceRef, version int, more ...string) string {
	number := ""
	if version > 0 {
		number = strconv.Itoa(version)
	}
	return route.Query(route.AdminResources()+"/"+act, append([]string{FieldKind, ref.Kind, FieldPlugin, ref.Plugin, FieldType, ref.Type, FieldName, ref.Name, FieldVersion, number}, more...)...)
}

// What becomes of a version that is saved.
const (
	DoSave    = "save"
	DoStage   = "stage"
	DoRelease = "release"
	DoRetry   = "retry"
)

// FileSave receives a file (POST), and what becomes of it.
func FileSave(do, task string) string {
	return route.Query(route.AdminResources()+"/save", "do", do, FieldTask, task)
}

// FileCheck receives the text of a file (POST) and says what is wrong with it.
func FileCheck() string { return route.AdminResources() + "/check" }

// FilesRelease shows what a release of all that is staged would do (GET), and does it (POST).
func FilesRelease() string { return route.AdminResources() + "/sync" }

// What is done with a version of an entry.
const (
	VersionRelease     = "release"
	VersionWithdraw    = "withdraw"
	VersionDeprecation = "deprecation"
)

// FieldRelease is "false" to save a version without releasing it.
const FieldRelease = "release"

// FieldMessage is the message of a deprecated version.
const FieldMessage = "message"

// VersionAct releases, withdraws or deprecates a version of an entry (POST).
func VersionAct(kind loom.EntityKind, name string, version int, act string) string {
	return route.AdminEntryVersion(kind, name, version) + "/" + act
}

func versionLabel(act string, version int) templ.Attributes {
	return templ.Attributes{"aria-label": act + " version " + strconv.Itoa(version)}
}
