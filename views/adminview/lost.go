package adminview

// LostService is a service that something names and that is not there.
type LostService struct {
	// Text says what is missing.
	Text  string
	Links []LostLink
}

// LostFile is what is said beneath a field that names a file of a plugin: nothing with an
// empty Name. Upload is where the file can be stored.
type LostFile struct{ ID, Name, Upload string }

// LostLink leads to where that is mended.
type LostLink struct{ Label, Href string }
