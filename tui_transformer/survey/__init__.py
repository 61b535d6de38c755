"""Running a survey: texts are streamed, spread over processes or Ray, added up, saved on the way, and tabulated."""
