package adminview

// LostService is a service that something names and that is not there.
type LostService struct {
	// Text says what is missing.
	Text  string
	Links []LostLink
}

// LostFiles is what is said beneath a field that names files of a plugin, of which some are
// not there; of none nothing.
type LostFiles struct {
	ID    string
	Files []LostFile
}

// LostFile is a file that is not there. Word is what it is, Upload where it can be stored.
type LostFile struct{ Word, Name, Upload string }

// LostLink leads to where that is mended.
type LostLink struct{ Label, Href string }
