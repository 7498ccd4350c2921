"""Training of the default model, from folders of captioned videos and pictures to the file that ships."""
