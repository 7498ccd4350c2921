"""Lists of hits for other programs: tables, edit decision lists, timelines and playlists."""
