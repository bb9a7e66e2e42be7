"""Capture through Nsight Systems: the server runs under ``nsys launch``, and the profile window is ``nsys start`` to ``nsys stop``."""
