"""The bundled agent and model server: the main job without keys or network."""
